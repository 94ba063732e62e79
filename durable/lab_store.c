/* The lab provider: worlds of stores in memory, their clock, and when calls are done. */
#include "durable/lab_rows.h"

#include "base/alloc.h"

struct ebb__lab_world {
    ebb_allocator allocator;
    ebb__lab_data *stores;
    uint32_t refs; /* open stores, and whoever has made it */
    uint64_t advanced;
    uint64_t (*delay)(void *arg, const ebb_provider_call *c);
    void *delay_arg;
    void (*committed)(void *arg, const ebb_provider_call *c);
    void *committed_arg;
};

/* Which world the stores of a runtime are in. Both worlds that were set and those that a runtime has by itself. */
typedef struct binding {
    struct binding *next;
    ebb_runtime *runtime;
    ebb__lab_world *world;
    ebb_allocator allocator;
    bool own; /* is freed with its last store */
} binding;

static _Thread_local binding *bindings;

/* ---- worlds ------------------------------------------------------------------------------------------------------ */

ebb_status ebb__lab_world_new(ebb_allocator a, ebb__lab_world **out) {
    ebb__lab_world *w = *out = ebb__alloc(&a, sizeof *w);
    if (w == NULL) return EBB_ERR_NOMEM;
    memset(w, 0, sizeof *w);
    w->allocator = a;
    w->refs = 1;
    return EBB_OK;
}

static void data_free(ebb__lab_data *d) {
    ebb_allocator a = d->allocator;
    ebb__lab_data_fini(d);
    ebb__free(&a, d, sizeof *d + strlen(d->name) + 1);
}

static void world_release(ebb__lab_world *w) {
    ebb__lab_data *next;
    if (--w->refs > 0) return;
    for (ebb__lab_data *d = w->stores; d != NULL; d = next) {
        next = d->next;
        data_free(d);
    }
    ebb_allocator a = w->allocator;
    ebb__free(&a, w, sizeof *w);
}

static void unbind(binding **at) {
    binding *b = *at;
    ebb_allocator a = b->allocator;
    *at = b->next;
    ebb__free(&a, b, sizeof *b);
}

static binding **find_binding(const ebb_runtime *rt) {
    binding **at = &bindings;
    while (*at != NULL && (*at)->runtime != rt) at = &(*at)->next;
    return at;
}

void ebb__lab_world_free(ebb__lab_world *w) {
    for (binding **at = &bindings; *at != NULL;) {
        if ((*at)->world == w && !(*at)->own) unbind(at);
        else at = &(*at)->next;
    }
    world_release(w);
}

static binding *bind(ebb_allocator a, ebb_runtime *rt, ebb__lab_world *w) {
    binding *b = ebb__alloc(&a, sizeof *b);
    if (b == NULL) return NULL;
    *b = (binding){bindings, rt, w, a, false};
    bindings = b;
    return b;
}

ebb_status ebb__lab_world_use(ebb_runtime *rt, ebb__lab_world *w) {
    binding **at = find_binding(rt);
    if (*at != NULL && !(*at)->own) unbind(at);
    return w == NULL || bind(w->allocator, rt, w) != NULL ? EBB_OK : EBB_ERR_NOMEM;
}

void ebb__lab_world_advance(ebb__lab_world *w, uint64_t ns) {
    w->advanced += ns;
}

void ebb__lab_world_set_delay(ebb__lab_world *w, uint64_t (*delay)(void *arg, const ebb_provider_call *c),
                              void *arg) {
    w->delay = delay;
    w->delay_arg = arg;
}

void ebb__lab_world_set_committed(ebb__lab_world *w, void (*fn)(void *arg, const ebb_provider_call *c),
                                  void *arg) {
    w->committed = fn;
    w->committed_arg = arg;
}

ebb__lab_data *ebb__lab_world_stores(const ebb__lab_world *w) {
    return w->stores;
}

/* The world for a store that `rt` opens, with a reference. NULL: no memory. */
static ebb__lab_world *world_of(const ebb_provider_host *host) {
    ebb__lab_world *w;
    binding *b = *find_binding(host->runtime);
    if (b != NULL) {
        b->world->refs++;
        return b->world;
    }
    if (ebb__lab_world_new(host->allocator, &w) != EBB_OK) return NULL;
    b = bind(host->allocator, host->runtime, w);
    if (b != NULL) {
        b->own = true;
        return w;
    }
    world_release(w);
    return NULL;
}

static void leave_world(const ebb_provider_host *host, ebb__lab_world *w) {
    binding **at = find_binding(host->runtime);
    if (*at != NULL && (*at)->own && (*at)->world == w && w->refs == 1) unbind(at);
    world_release(w);
}

/* ---- opened and closed --------------------------------------------------------------------------------------------- */

static ebb__lab_data *data_new(ebb__lab_world *w, const char *name, const ebb_provider_host *host) {
    const size_t n = sizeof(ebb__lab_data) + strlen(name) + 1;
    ebb__lab_data *d = ebb__alloc(&w->allocator, n);
    if (d == NULL) return NULL;
    memset(d, 0, n);
    d->world = w;
    d->allocator = w->allocator;
    strcpy(d->name, name);
    if (ebb__lab_data_init(d) != EBB_OK) {
        data_free(d);
        return NULL;
    }
    d->base = host->wall(host->ctx) - host->boot(host->ctx);
    d->next = w->stores;
    w->stores = d;
    return d;
}

static ebb__lab_data *data_of(ebb__lab_world *w, const char *name, const ebb_provider_open_call *c) {
    ebb__lab_data *d = w->stores;
    while (d != NULL && strcmp(d->name, name) != 0) d = d->next;
    return d != NULL || c->opts->no_create ? d : data_new(w, name, c->host);
}

static void lab_open(ebb_provider_open_call *c) {
    const ebb_provider_host *host = c->host;
    const char *name = strchr(c->opts->url, ':');
    ebb__lab_world *w = world_of(host);
    ebb__lab_data *d = w != NULL ? data_of(w, name != NULL ? name + 1 : "", c) : NULL;
    ebb__lab_self *s = d != NULL ? ebb__alloc(&host->allocator, sizeof *s) : NULL;
    if (s != NULL) {
        memset(s, 0, sizeof *s);
        s->data = d;
        s->host = host;
        s->read_only = c->opts->read_only;
        ebb__lab_append(&d->stores, &s->links);
        c->self = s;
        ebb_provider_done(&c->call, EBB_OK, NULL);
        return;
    }
    const bool missing = w != NULL && d == NULL && c->opts->no_create;
    if (w != NULL) leave_world(host, w);
    if (missing) ebb_provider_done(&c->call, EBB_ERR_SCHEMA, "there is no such store in memory");
    else ebb_provider_done(&c->call, EBB_ERR_NOMEM, "no memory for a store in memory");
}

static void lab_close(void *self, ebb_provider_close_call *c) {
    ebb__lab_self *s = self;
    ebb__lab_world *w = s->data->world;
    const ebb_provider_host *host = s->host;
    ebb_allocator a = host->allocator;
    ebb__lab_unlink(&s->data->stores, &s->links);
    ebb__free(&a, s, sizeof *s);
    leave_world(host, w);
    ebb_provider_done(&c->call, EBB_OK, NULL);
}

/* ---- done ------------------------------------------------------------------------------------------------------------ */

uint64_t ebb__lab_now(ebb__lab_self *s) {
    ebb__lab_data *d = s->data;
    const uint64_t now = d->base + s->host->boot(s->host->ctx) + d->world->advanced;
    if (now > d->now) d->now = now;
    return d->now;
}

void ebb__lab_done(ebb__lab_self *s, ebb_provider_call *c) {
    ebb__lab_world *w = s->data->world;
    s->stats.commits++;
    s->stats.members++;
    if (w->committed != NULL) w->committed(w->committed_arg, c);
    ebb_provider_done(c, EBB_OK, NULL);
}

void ebb__lab_read(ebb_provider_call *c) {
    ebb_provider_done(c, EBB_OK, NULL);
}

/* ---- calls -------------------------------------------------------------------------------------------------------------- */

static void run(ebb__lab_self *s, ebb_provider_call *c) {
    switch (c->op) {
#define RUN(OP, fn)                                                                                          \
    case EBB_PROVIDER_##OP: ebb__lab_##fn(s, (ebb_provider_##fn##_call *)c); return
        RUN(JOIN, join);
        RUN(RENEW, renew);
        RUN(LEAVE, leave);
        RUN(FETCH_TURNS, fetch_turns);
        RUN(ACK_TURN, ack_turn);
        RUN(ABANDON_TURNS, abandon_turns);
        RUN(FETCH_WORK, fetch_work);
        RUN(ACK_WORK, ack_work);
        RUN(ABANDON_WORK, abandon_work);
        RUN(START, start);
        RUN(SEND, send);
        RUN(HISTORY, history);
    case EBB_PROVIDER_INSTANCE: ebb__lab_instance_of(s, (ebb_provider_instance_call *)c); return;
    case EBB_PROVIDER_LIST: ebb__lab_list_of(s, (ebb_provider_list_call *)c); return;
    case EBB_PROVIDER_VALUE:
        ebb__lab_value_of(s, (ebb_provider_value_call *)c);
        return;
        RUN(OUTSTANDING, outstanding);
        RUN(MARK, mark);
        RUN(RESET, reset);
        RUN(REMOVE, remove);
    default: ebb_provider_done(c, EBB_ERR_INVALID, "no such call"); return;
    }
}

static bool writes(const ebb_provider_call *c) {
    return c->op < EBB_PROVIDER_HISTORY || c->op > EBB_PROVIDER_OUTSTANDING;
}

/* A call that takes its time. */
typedef struct pause {
    ebb__lab_self *self;
    ebb_provider_call *call;
    ebb_future *over;
} pause;

/* The pause is over, or was cut by the end of the region. */
static void paused(ebb_cx *cx, void *arg) {
    const pause *p = arg;
    (void)cx;
    ebb_future_drop(p->over);
    run(p->self, p->call);
}

static bool begin_pause(ebb__lab_self *s, ebb_provider_call *c, uint64_t delay) {
    pause *p = ebb_provider_alloc(c, sizeof *p);
    if (p == NULL) return false;
    ebb_future *f = ebb_after_site(ebb_runtime_host(s->host->runtime), delay, "call of a lab store");
    *p = (pause){s, c, f};
    if (ebb_future_on_cleanup(f, paused, p) == EBB_OK) return true;
    ebb_future_drop(f);
    return false;
}

static void begin(void *self, ebb_provider_call *c) {
    ebb__lab_self *s = self;
    const ebb__lab_world *w = s->data->world;
    if (s->read_only && writes(c)) {
        ebb_provider_done(c, EBB_ERR_CLOSED, "the store was opened to be read");
        return;
    }
    const uint64_t delay = w->delay != NULL ? w->delay(w->delay_arg, c) : 0;
    if (delay == 0 || !begin_pause(s, c, delay)) run(s, c);
}

#define FUNCTION(fn)                                                                                         \
    static void lab_##fn(void *self, ebb_provider_##fn##_call *c) {                                          \
        begin(self, &c->call);                                                                               \
    }
FUNCTION(join)
FUNCTION(renew)
FUNCTION(leave)
FUNCTION(fetch_turns)
FUNCTION(ack_turn)
FUNCTION(abandon_turns)
FUNCTION(fetch_work)
FUNCTION(ack_work)
FUNCTION(abandon_work)
FUNCTION(start)
FUNCTION(send)
FUNCTION(history)
FUNCTION(instance)
FUNCTION(list)
FUNCTION(value)
FUNCTION(outstanding)
FUNCTION(mark)
FUNCTION(reset)
FUNCTION(remove)

static void lab_stats(const void *self, ebb_provider_stats *out) {
    *out = ((const ebb__lab_self *)self)->stats;
}

const ebb_provider ebb__provider_lab = {
    .size = sizeof(ebb_provider),
    .scheme = "lab",
    .about = "in memory",
    .open = lab_open,
    .close = lab_close,
    .join = lab_join,
    .renew = lab_renew,
    .leave = lab_leave,
    .fetch_turns = lab_fetch_turns,
    .ack_turn = lab_ack_turn,
    .abandon_turns = lab_abandon_turns,
    .fetch_work = lab_fetch_work,
    .ack_work = lab_ack_work,
    .abandon_work = lab_abandon_work,
    .start = lab_start,
    .send = lab_send,
    .history = lab_history,
    .instance = lab_instance,
    .list = lab_list,
    .value = lab_value,
    .outstanding = lab_outstanding,
    .mark = lab_mark,
    .reset = lab_reset,
    .remove = lab_remove,
    .stats = lab_stats,
};
