/* Guide: a service with its clients, in a network of the lab. */
#include <ebb/ebb.h>
#include <ebb/lab.h>
#include <stdio.h>
#include <string.h>

/* ---- the service: it counts its visitors ----------------------------------------------------------------- */

static ebb_status count(ebb_cx *cx, ebb_http *x, void *visitors) {
    char text[24];
    snprintf(text, sizeof text, "%u\n", ++*(unsigned *)visitors);
    return ebb_http_text(cx, x, 200, text);
}

static ebb_status serve(ebb_cx *cx, void *visitors) {
    ebb_http_server *server;
    ebb_http_server_opts opts = {.address = {"10.0.0.1", 80}};
    ebb_status st = ebb_http_listen(cx, &opts, &server);
    return st == EBB_OK ? ebb_http_on(server, "GET", "/", count, visitors) : st;
}

static int service_main(int argc, char **argv) {
    unsigned visitors = 0;
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator()};
    (void)argc;
    (void)argv;
    return ebb_service_run(&opts, serve, &visitors);
}

/* ---- a client -------------------------------------------------------------------------------------------- */

static ebb_status visit(ebb_cx *cx, void *arg) {
    ebb_lab *lab = ebb_lab_here();
    ebb_http_client *client;
    ebb_value v;
    (void)arg;
    ebb_status st = ebb_http_client_new(cx, NULL, &client);
    if (st == EBB_OK) st = ebb_await(cx, ebb_http_get(cx, client, "http://counter/"), &v);
    if (st != EBB_OK && !ebb_lab_disturbed(lab)) ebb_lab_fail(lab, ebb_status_name(st));
    if (st != EBB_OK) return EBB_OK; /* a fault, or an injected cancel, may break a call off */
    if (ebb_http_response_of(&v)->body[0] < '1') ebb_lab_fail(lab, "a visitor was not counted");
    ebb_value_discard(cx, v);
    return EBB_OK;
}

static const ebb_lab_program programs[] = {{.name = "counter", .ip = "10.0.0.1", .main = service_main},
                                           {.name = "anna", .ip = "10.0.0.2", .fn = visit},
                                           {.name = "bert", .ip = "10.0.0.3", .fn = visit}};
static const ebb_lab_network network = {
    .programs = programs, .n = 3, .resets = 1, .losses = 3, .partitions = 1};
static const ebb_lab_scenario scenario = {
    .name = "visitors", .about = "two visits", .play = ebb_lab_network_play, .network = &network};

int main(int argc, char **argv) {
    static const ebb_lab_scenario *const scenarios[] = {&scenario, NULL};
    if (argc > 1) return ebb_lab_main(ebb_libc_allocator(), argc, argv, scenarios);
    ebb_lab *lab = ebb_lab_new(ebb_libc_allocator());
    ebb_lab_case random = {.scenario = &scenario, .seed = 1},
                 plain = {.scenario = &scenario, .recorded = true};
    ebb_lab_explore_result explored;
    ebb_lab_inject_result injected;
    if (lab == NULL) return 1;
    ebb_status st = ebb_lab_explore(lab, &random, &(ebb_lab_explore_opts){.schedules = 200}, &explored);
    printf("%d schedules: %s %s\n", (int)explored.schedules, ebb_status_name(st), explored.failure.text);
    if (st == EBB_OK) st = ebb_lab_inject(lab, &plain, NULL, &injected);
    if (st == EBB_OK) printf("five actions at each of %d suspension points\n", (int)injected.points);
    else printf("%s\n", ebb_status_name(st));
    ebb_lab_case_free(lab, &random);
    ebb_lab_case_free(lab, &plain);
    ebb_lab_free(lab);
    return st == EBB_OK ? 0 : 1;
}
