/* Guide: faults on purpose in a network of the lab: a partition, a reset, a signal, and what is on a disk. */
#include <ebb/ebb.h>
#include <ebb/lab.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* ---- the service keeps a number in a file ---------------------------------------------------------------- */

static ebb_status keep(ebb_cx *cx, ebb_http *x, void *arg) {
    char digit = '0';
    ebb_value v;
    (void)arg;
    ebb_status st = ebb_await(cx, ebb_file_open(cx, "number", O_RDWR, 0600), &v);
    if (st != EBB_OK) return ebb_http_text(cx, x, 500, ebb_status_text(st));
    ebb_file f = ebb_file_of(v);
    st = ebb_await(cx, ebb_file_read(cx, f, &digit, 1, 0), NULL);
    digit++;
    if (st == EBB_OK) st = ebb_await(cx, ebb_file_write(cx, f, &digit, 1, 0), NULL);
    (void)ebb_await(cx, ebb_file_close(cx, f), NULL);
    return ebb_http_text(cx, x, st == EBB_OK ? 200 : 500, "");
}

static ebb_status serve(ebb_cx *cx, void *arg) {
    ebb_http_server *server;
    ebb_http_server_opts opts = {.address = {"10.0.0.1", 80}};
    ebb_status st = ebb_http_listen(cx, &opts, &server);
    return st == EBB_OK ? ebb_http_on(server, "POST", "/", keep, arg) : st;
}

static int service_main(int argc, char **argv) {
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator()};
    (void)argc;
    (void)argv;
    return ebb_service_run(&opts, serve, NULL);
}

static ebb_status visit(ebb_cx *cx, void *arg) {
    ebb_http_client *client;
    ebb_http_call call = {
        .method = "POST", .url = "http://store/", .deadline = ebb_now(cx) + 60 * EBB_SECOND};
    (void)arg;
    if (ebb_http_client_new(cx, NULL, &client) != EBB_OK) return EBB_OK;
    (void)ebb_await(cx, ebb_http_fetch(cx, client, &call),
                    NULL); /* it may fail: that is what the faults are for */
    return EBB_OK;
}

/* ---- what happens to them -------------------------------------------------------------------------------- */

static ebb_status setup(ebb_lab *lab) {
    return ebb_lab_file_put(lab, "store", "number", "4", 1);
}

/* Called four times, in this order, whenever the seed wants it. */
static void step(ebb_lab *lab, uint32_t n) {
    if (n == 0) (void)ebb_lab_partition(lab, "store", "anna", 5 * EBB_SECOND);
    else if (n == 1) (void)ebb_lab_reset(lab, "store");
    else if (n == 2) (void)ebb_lab_partition(lab, "store", "anna", EBB_SECOND);
    else (void)ebb_lab_signal(lab, "store", SIGTERM);
}

/* Whatever broke the visit off, the number is whole: that of before, or that of after. */
static void check(ebb_lab *lab) {
    size_t n;
    const char *number = ebb_lab_file_get(lab, "store", "number", &n);
    if (n != 1 || (*number != '4' && *number != '5')) ebb_lab_fail(lab, "the number is damaged");
}

static const ebb_lab_program programs[] = {{.name = "store", .ip = "10.0.0.1", .main = service_main},
                                           {.name = "anna", .ip = "10.0.0.2", .fn = visit}};
static const ebb_lab_network network = {.programs = programs, .n = 2};
static const ebb_lab_scenario scenario = {.name = "faults",
                                          .about = "a visit that is broken off",
                                          .play = ebb_lab_network_play,
                                          .network = &network,
                                          .steps = 4,
                                          .setup = setup,
                                          .step = step,
                                          .check = check};

int main(int argc, char **argv) {
    static const ebb_lab_scenario *const scenarios[] = {&scenario, NULL};
    static char words[][12] = {"explore", "faults", "--schedules", "300"};
    char *explore[] = {argv[0], words[0], words[1], words[2], words[3], NULL};
    return ebb_lab_main(ebb_libc_allocator(), argc > 1 ? argc : 5, argc > 1 ? argv : explore, scenarios);
}
