/* test.c - the service and its clients in a network of the lab: many schedules, lost connections, virtual time.
 *
 * What fails is written to a file that runs the failure again: test/test --help says how. */
#include <ebb/lab.h>
#include <stdio.h>
#include <string.h>

#include "service.h"

static int service_main(int argc, char **argv) {
    ebb_address address = {"10.0.0.1", 80};
    const ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator()};
    (void)argc;
    (void)argv;
    return ebb_service_run(&opts, service_begin, &address);
}

static ebb_status ask(ebb_cx *cx, void *arg) {
    static const char wanted[] = "hello, ada\n";
    ebb_lab *lab = ebb_lab_here();
    ebb_http_client *client;
    ebb_value v;
    (void)arg;
    ebb_status st = ebb_http_client_new(cx, NULL, &client);
    if (st == EBB_OK) st = ebb_await(cx, ebb_http_get(cx, client, "http://@name@/ada"), &v);
    if (st != EBB_OK && !ebb_lab_disturbed(lab)) ebb_lab_fail(lab, ebb_status_name(st));
    if (st != EBB_OK) return EBB_OK; /* a connection may be lost, or a cancel injected */
    const ebb_http_response *r = ebb_http_response_of(&v);
    if (r->status != 200 || strcmp(r->body, wanted) != 0) ebb_lab_fail(lab, "this is no greeting");
    ebb_value_discard(cx, v);
    return EBB_OK;
}

static const ebb_lab_program programs[] = {{.name = "@name@", .ip = "10.0.0.1", .main = service_main},
                                           {.name = "client", .ip = "10.0.0.2", .fn = ask},
                                           {.name = "other", .ip = "10.0.0.3", .fn = ask}};
static const ebb_lab_network network = {.programs = programs, .n = 3, .resets = 1, .losses = 2};
static const ebb_lab_scenario scenario = {
    .name = "greetings", .about = "two clients", .play = ebb_lab_network_play, .network = &network};

int main(int argc, char **argv) {
    static const ebb_lab_scenario *const scenarios[] = {&scenario, NULL};
    if (argc > 1) return ebb_lab_main(ebb_libc_allocator(), argc, argv, scenarios);
    ebb_lab *lab = ebb_lab_new(ebb_libc_allocator());
    ebb_lab_case c = {.scenario = &scenario, .seed = 1};
    ebb_lab_explore_result r;
    if (lab == NULL) return 1;
    const ebb_status st = ebb_lab_explore(lab, &c, &(ebb_lab_explore_opts){.schedules = 100}, &r);
    printf("%d schedules: %s %s\n", (int)r.schedules, ebb_status_name(st), r.failure.text);
    ebb_lab_case_free(lab, &c);
    ebb_lab_free(lab);
    return st == EBB_OK ? 0 : 1;
}
