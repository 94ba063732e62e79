/* Activities that are shell scripts. A script gets {"input":...,"key":"...","attempt":N} on standard input; what it
 * writes to standard output is its result. Exit 75 asks for another attempt, other failures are final.
 *
 *     example_durable_scripts [STORE] */
#include <ebb/durable.h>
#include <ebb/ebb.h>

#include <stdio.h>

static const char upload[] = "read -r request\n"
                             "case $request in\n"
                             "*'\"attempt\":1'*) echo 'the server is away' >&2; exit 75 ;;\n"
                             "*) printf '\"uploaded\"' ;;\n"
                             "esac\n";
static const char check[] = "cat >/dev/null; echo 'the checksum is wrong' >&2; exit 1";

static ebb_status backup(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_call_opts retry = {.attempts = 5, .backoff = EBB_BACKOFF_FIXED, .pause = 20 * EBB_MS};
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "upload", in, &retry), out);
    if (st != EBB_OK) return st;
    st = ebb_orch_await(o, ebb_orch_call(o, "check", in, &retry), NULL);
    return st == EBB_FAILED ? ebb_orch_fail(o, ebb_orch_failure(o)) : st;
}

static ebb_status add(ebb_worker *w, const char *name, const char *script) {
    const char *args[] = {"sh", "-c", script, NULL};
    return ebb_worker_command(w, name, &(ebb_process_opts){.file = "/bin/sh", .args = args}, NULL);
}

static ebb_status run(ebb_cx *cx, ebb_store *s) {
    ebb_value v;
    const ebb_start_opts start = {.id = "backup-1", .name = "backup", .input = ebb_blob_text("\"photos\"")};
    ebb_status st = ebb_await(cx, ebb_instance_start(cx, s, &start), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_instance_wait(cx, s, "backup-1"), &v);
    if (st != EBB_OK) return st;
    const ebb_instance_info *i = ebb_instance_info_of(&v);
    printf("%s: %s, %s: %s\n", i->id, ebb_instance_state_name(i->state), i->failure.code, i->failure.message);
    ebb_value_discard(cx, v);
    st = ebb_await(cx, ebb_instance_history(cx, s, "backup-1", NULL), &v);
    if (st != EBB_OK) return st;
    size_t n;
    const ebb_history_event *e = ebb_history_of(&v, &n);
    for (size_t k = 0; k < n; k++) printf("%2llu %s\n", (unsigned long long)e[k].number, e[k].kind);
    ebb_value_discard(cx, v);
    return EBB_OK;
}

static ebb_status main_task(ebb_cx *cx, void *url) {
    ebb_worker *w;
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_store_open(cx, &(ebb_store_opts){.url = url}), &v);
    if (st != EBB_OK) return st;
    ebb_store *s = ebb_store_of(&v);
    st = ebb_worker_open(cx, s, NULL, &w);
    if (st != EBB_OK) return st;
    st = ebb_worker_orch(w, "backup", 1, backup);
    if (st == EBB_OK) st = add(w, "upload", upload);
    if (st == EBB_OK) st = add(w, "check", check);
    if (st == EBB_OK) st = ebb_worker_begin(w);
    if (st == EBB_OK) st = run(cx, s);
    ebb_region_close(cx, ebb_worker_region(w)); /* else it goes on */
    return st;
}

int main(int argc, char **argv) {
    ebb_loop *loop;
    char lab[] = "lab:";
    const ebb_loop_opts opts = {.runtime = {.allocator = ebb_libc_allocator()}};
    ebb_status st = ebb_loop_new(&opts, main_task, argc > 1 ? argv[1] : lab, &loop);
    if (st == EBB_OK) st = ebb_loop_join(loop);
    if (st != EBB_OK) fprintf(stderr, "scripts: %s\n", ebb_status_text(st));
    return st == EBB_OK ? 0 : 1;
}
