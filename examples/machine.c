/* Two machines: a door that asks a guard before it lets somebody in. The guard faults at one name, and the door goes on:
 * every request ends, with a reply or with the reason why there is none. */
#include <ebb/ebb.h>
#include <stdio.h>
#include <string.h>

enum { KNOCK = 1, MAY_ENTER, YES, NO, CLOSE_AGAIN, KINDS };
enum { CLOSED, OPEN };

typedef struct door {
    ebb_machine guard;
    uint32_t visitors;
} door;

/* Passes the name on. The reply comes later, as a message; or the failure, after 100 ms at the latest. */
static ebb_status on_knock(ebb_machines *ms, void *self, const ebb_message *m) {
    door *d = self;
    return ebb_id_status(
        ebb_machine_request(ms, d->guard, MAY_ENTER, m->payload, m->size, 100 * EBB_MS, 0).id);
}

/* `origin` is what was asked for. The door closes again by itself. */
static ebb_status on_yes(ebb_machines *ms, void *self, const ebb_message *m) {
    door *d = self;
    d->visitors++;
    printf("%s may enter, visitor %u\n", (const char *)m->origin, d->visitors);
    ebb_status st = ebb_machine_become(ms, OPEN, NULL);
    return st == EBB_OK ? ebb_machine_after(ms, 50 * EBB_MS, CLOSE_AGAIN) : st;
}

static ebb_status on_no(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)ms;
    (void)self;
    printf("%s may not enter%s\n", (const char *)m->origin,
           m->failure == EBB_REQUEST_FAULTED ? ": no answer" : "");
    return EBB_OK;
}

static ebb_status on_close_again(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)self;
    (void)m;
    printf("the door closes\n");
    return ebb_machine_become(ms, CLOSED, NULL);
}

/* A handler of a request replies, or it has faulted; a fault is undone, and does not stop the guard for good. */
static ebb_status on_may_enter(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)self;
    if (strcmp(m->payload, "mallory") == 0) return EBB_FAILED;
    uint16_t answer = strcmp(m->payload, "alice") == 0 ? YES : NO;
    return ebb_machine_reply(ms, m->request, answer, NULL, 0);
}

#define ON(fn)                                                                                               \
    { fn, NULL, EBB_MACHINE_HANDLE }
#define LATER                                                                                                \
    { NULL, NULL, EBB_MACHINE_DEFER }

static const ebb_machine_rule door_table[2][KINDS] = {
    [CLOSED] = {[EBB_MACHINE_REQUEST_FAILED] = ON(on_no),
                [KNOCK] = ON(on_knock),
                [YES] = ON(on_yes),
                [NO] = ON(on_no)},
    [OPEN] = {[EBB_MACHINE_REQUEST_FAILED] = LATER,
              [KNOCK] = LATER,
              [YES] = LATER,
              [NO] = LATER,
              [CLOSE_AGAIN] = ON(on_close_again)},
};
static const ebb_machine_state door_states[2] = {{.name = "Closed"}, {.name = "Open"}};
static const ebb_machine_type door_type = {.name = "Door",
                                           .states = door_states,
                                           .table = &door_table[0][0],
                                           .fields = sizeof(door),
                                           .n_states = 2,
                                           .columns = KINDS};

static const ebb_machine_rule guard_table[2][KINDS] = {{[MAY_ENTER] = ON(on_may_enter)},
                                                       {[MAY_ENTER] = ON(on_may_enter)}};
static const ebb_machine_state guard_states[2] = {{.name = "Ready"}, {.name = "Shaken"}};
static const ebb_machine_type guard_type = {.name = "Guard",
                                            .states = guard_states,
                                            .table = &guard_table[0][0],
                                            .n_states = 2,
                                            .columns = KINDS,
                                            .fault_state = 1 + 1};

static void pass(ebb_runtime *rt, uint64_t now) {
    ebb_runtime_advance(rt, now);
    while (ebb_runtime_pump(rt, 100) == EBB_PENDING) {}
}

int main(void) {
    static const char *const names[] = {"alice", "bob", "mallory", "alice"};
    ebb_runtime_opts opts = {.allocator = ebb_libc_allocator()};
    ebb_runtime *rt;
    ebb_machines *ms;
    if (ebb_runtime_new(&opts, &rt) != EBB_OK) return 1;
    ebb_cx *host = ebb_runtime_host(rt);
    if (ebb_machines_open(host, &ms, &(ebb_machines_opts){.n_kinds = KINDS}) != EBB_OK) return 1;
    ebb_machine guard = ebb_machine_spawn(ms, &guard_type, 0, NULL);
    ebb_machine front = ebb_machine_spawn(ms, &door_type, CLOSED, &(door){.guard = guard});
    ebb_machine_start(ms, guard);
    ebb_machine_start(ms, front);
    for (size_t i = 0; i < 4; i++) ebb_machine_send(ms, front, KNOCK, names[i], strlen(names[i]) + 1);
    for (uint64_t ms_passed = 0; ms_passed < 300; ms_passed += 10) pass(rt, ms_passed * EBB_MS);
    ebb_region_close(host, ebb_machines_region(ms));
    pass(rt, EBB_SECOND);
    ebb_status st = ebb_region_join(host, ebb_machines_region(ms));
    printf("closed: %s\n", ebb_status_text(st));
    ebb_machines_free(ms);
    ebb_runtime_free(rt);
    return st == EBB_OK ? 0 : 1;
}
