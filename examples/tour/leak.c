/* A leak: a promise that nobody keeps is found when its task ends, named, and undone. */
#include "tour.h"

#include <stdio.h>
#include <string.h>

static void give_seat_back(void *arg) {
    int *free_seats = arg;
    ++*free_seats;
}

/* Takes a seat, promises to book it or give it back, and goes home. */
static ebb_status careless_poll(ebb_cx *cx, void *state) {
    int *free_seats = state;
    --*free_seats;
    ebb_obligation seat = ebb_obligation_reserve(cx, EBB_OBLIGATION_LEASE, give_seat_back, free_seats);
    return ebb_id_status(seat.id);
}

/* The file and line of a place, without the folders. */
static const char *short_site(const char *site) {
    const char *slash = strrchr(site, '/');
    return slash == NULL ? site : slash + 1;
}

static void play(stage *s) {
    ebb_cx *host = stage_host(s);
    int free_seats = 1;
    ebb_region office = ebb_region_open(host, NULL);
    stage_show_region(s, office, "office");
    stage_show_task(s, ebb_spawn(host, office, careless_poll, &free_seats), "careless");
    stage_run_to(s, 10);
    ebb_region_close(host, office);
    stage_run_out(s);

    char line[128];
    ebb_region_report report = {0};
    ebb_work work = {0, "?"};
    bool named = ebb_region_report_of(host, office, &report) == EBB_OK && report.leaked == 1 &&
                 ebb_region_leaked_at(host, office, 0, &work) == EBB_OK;
    snprintf(line, sizeof line, "the report names the place: %s", short_site(work.site));
    stage_expect(s, named && strstr(work.site, "leak.c:") != NULL, line);
    stage_expect(s, free_seats == 1, "its abort hook has given the seat back");
    stage_expect(s, ebb_region_join(host, office) == EBB_OK, "the region closed all the same");
}

const chapter leak = {"leak", "A leak: reserved, never resolved, and caught", play};
