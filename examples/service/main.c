/* A service that stops in good order. (examples/greeter.c is a smaller one.)
 *
 *   service [--port N] [--audit FILE] [--budget MS]    until SIGTERM or Ctrl-C; a second one forces it
 *           [--operator N]                             with a port for operators: when the budget is over, it
 *                                                      waits for one of them to extend or force it
 *           [--trace FILE] [--journal FILE]            records what it does; docs/trace.md reads it
 *           [--inspect SOCKET]                         "ebb top SOCKET" shows what it does; with "", "ebb top PID"
 *   service --inject                                   stops it at every point, in virtual time
 *
 *   build/release/examples/service --port 7000 --audit service.audit
 *   nc 127.0.0.1 7000                                  then lines: "work 2000", "rollout v42", "health"
 *
 *   curl localhost:7001/explain                        with --operator 7001, while it stops too
 *   kill -USR1 PID                                     prints the same on standard error
 *
 * requests.c lists what it can be asked, operator.c what an operator may do. The exit status says how it ended: 0 in order (work that was still
 * there at cancel_at was cancelled, and cleaned up), 1 it could not start or a task failed, 3 the budget was
 * over, 4 forced, 5 something was left behind; 2 is wrong usage. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service.h"

typedef struct arguments {
    server_opts server;
    const char *audit, *trace, *journal, *inspect;
    uint64_t budget_ms;
    bool inject;
} arguments;

static bool number(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *out) {
    char *end;
    *out = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == 0 && *out >= least && *out <= most) return true;
    fprintf(stderr, "service: %s '%s': expected a number, %" PRIu64 " to %" PRIu64 "\n", option, text, least,
            most);
    return false;
}

/* One option with its value, which is NULL if nothing follows. */
static bool take(arguments *a, const char *option, const char *value) {
    uint64_t port;
    if (value == NULL) {
        fprintf(stderr, "service: %s: expected a value\n", option);
        return false;
    }
    if (strcmp(option, "--audit") == 0) a->audit = value;
    else if (strcmp(option, "--trace") == 0) a->trace = value;
    else if (strcmp(option, "--journal") == 0) a->journal = value;
    else if (strcmp(option, "--inspect") == 0) a->inspect = value;
    else if (strcmp(option, "--budget") == 0) return number(option, value, 1, 3600000, &a->budget_ms);
    else if (!number(option, value, 0, 65535, &port)) return false;
    else if (strcmp(option, "--port") == 0) a->server.port = (uint16_t)port;
    else {
        a->server.operated = true;
        a->server.operator_port = (uint16_t)port;
    }
    return true;
}

static bool parse(int argc, char **argv, arguments *a) {
    static const char *const with_value[] = {"--port",  "--audit",   "--budget", "--operator",
                                             "--trace", "--journal", "--inspect"};
    for (int i = 1; i < argc; i++) {
        bool known = false;
        if (strcmp(argv[i], "--inject") == 0) {
            a->inject = true;
            continue;
        }
        for (size_t k = 0; k < sizeof with_value / sizeof *with_value; k++)
            known = known || strcmp(argv[i], with_value[k]) == 0;
        if (!known) {
            fprintf(stderr,
                    "service: no option '%s'; there are --port N, --audit FILE, --budget MS, --operator N, "
                    "--trace FILE, --journal FILE, --inspect SOCKET, --inject\n",
                    argv[i]);
            return false;
        }
        if (!take(a, argv[i], argv[i + 1])) return false; /* argv ends with NULL */
        i++;
    }
    return true;
}

/* ---- the log ----------------------------------------------------------------------------------------- */

static void tell_unfinished(const ebb_audit *audit) {
    ebb_audit_unfinished u;
    for (size_t i = 0; ebb_audit_unfinished_at(audit, i, &u) == EBB_OK; i++) {
        printf("unfinished: %s#%" PRIu64 "%s%s was %s (line %" PRIu64 ")\n", u.workflow, u.number,
               u.name[0] == 0 ? "" : " ", u.name, ebb_workflow_state_name(u.state), u.line);
    }
}

static bool open_log(const char *path, ebb_audit **out) {
    *out = NULL;
    if (path == NULL) return true;
    ebb_status st = ebb_audit_open(ebb_libc_allocator(), path, out);
    if (st == EBB_OK) tell_unfinished(*out);
    else fprintf(stderr, "service: can't open the audit log %s: %s\n", path, ebb_status_text(st));
    return st == EBB_OK;
}

/* ---- the process ------------------------------------------------------------------------------------- */

static void on_state(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to) {
    (void)arg;
    (void)wf;
    (void)from;
    printf("%s\n", ebb_workflow_state_name(to));
    fflush(stdout);
}

static void tell_end(const ebb_workflow_report *r, int status) {
    static const char *const texts[] = {[EBB_SERVICE_OK] = "stopped in order",
                                        [EBB_SERVICE_FAILED] = "failed",
                                        [EBB_SERVICE_TIMEOUT] =
                                            "the budget was over, what was left was forced",
                                        [EBB_SERVICE_FORCED] = "forced by a second signal",
                                        [EBB_SERVICE_LEAK] = "stopped, but something was left behind"};
    printf("%s: %" PRIu64 " of %" PRIu64 " ms, %u left behind\n", texts[status], r->elapsed / EBB_MS,
           r->budget / EBB_MS, r->leaks);
    if (r->audit != EBB_OK)
        fprintf(stderr, "service: the audit log is not whole: %s\n", ebb_status_text(r->audit));
    if (status == EBB_SERVICE_FAILED && r->status != EBB_OK)
        fprintf(stderr, "service: %s\n", ebb_status_text(r->status));
}

int main(int argc, char **argv) {
    arguments a = {.audit = NULL};
    ebb_audit *audit;
    ebb_workflow_report report = {.state = EBB_WORKFLOW_IDLE};
    ebb_status recording = EBB_OK;
    if (!parse(argc, argv, &a)) return 2;
    if (a.inject) return rehearse();
    if (!open_log(a.audit, &audit)) return EBB_SERVICE_FAILED;
    ebb_service_opts opts = {.loop = {.runtime.allocator = ebb_libc_allocator(),
                                      .trace_file = a.trace,
                                      .journal_file = a.journal,
                                      .recording = &recording},
                             .shutdown = {.name = "service",
                                          .budget = a.budget_ms * EBB_MS,
                                          .no_force = a.server.operated,
                                          .audit = audit,
                                          .on_state = on_state},
                             .report = &report,
                             .inspect = a.inspect};
    int status = ebb_service_run(&opts, server_run, &a.server);
    tell_end(&report, status);
    if (recording != EBB_OK)
        fprintf(stderr, "service: the trace or the journal is not whole: %s\n", ebb_status_text(recording));
    ebb_audit_close(audit);
    return status;
}
