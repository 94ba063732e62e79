/* main.c - @name@ [PORT]: SIGTERM and Ctrl-C stop it when the last request is answered. */
#include <stdio.h>
#include <stdlib.h>

#include "service.h"

int main(int argc, char **argv) {
    const int port = argc > 1 ? atoi(argv[1]) : 8080;
    ebb_address address = {"127.0.0.1", (uint16_t)port};
    ebb_workflow_report report = {0};
    ebb_service_opts opts = {
        .loop.runtime.allocator = ebb_libc_allocator(), .inspect = "", .report = &report};
    if (port < 1 || port > 65535) {
        fprintf(stderr, "usage: @name@ [PORT]\n");
        return 2;
    }
    fprintf(stderr, "@name@: http://127.0.0.1:%d/\n", port);
    const int status = ebb_service_run(&opts, service_begin, &address);
    if (status == EBB_SERVICE_FAILED)
        fprintf(stderr, "@name@: port %d: %s\n", port, ebb_status_text(report.status));
    return status;
}
