/* serve/story.h - what a trace says of each task and region, for people: names, sites, and the time of each event.
 *
 * An event has the time of its runtime, which stands still during a turn; the end of a poll has the time of the clock.
 * So an event happened at the later of the two: its own time, and the end of the last poll. */
#ifndef EBB_SERVE_STORY_H
#define EBB_SERVE_STORY_H

#include "base/map.h"
#include "serve/line.h"

enum { EBB__STORY_STRINGS = 1024 };

typedef struct ebb__thing {
    uint64_t id, region; /* region: of a task; parent: of a region */
    uint32_t site, name; /* numbers of strings; 0: none */
    uint64_t since;      /* when it began */
    uint8_t phase;
    uint64_t phase_since;
    uint64_t polls, ran, longest; /* of a task: polls, ns in them, ns of the longest */
    uint64_t parked_at;           /* when its last poll ended; 0: it is not parked */
    uint32_t waits_for; /* string: its last wait; 0: none. A poll that begins no other may go on with it */
    uint64_t awaits;    /* the future that it awaits; 0: none */
    uint64_t woken_by;  /* sequence number of its last wake-up; 0: none */
    uint64_t waited;    /* ns parked */
    uint64_t longest_wait;
    char longest_for[96]; /* what the longest wait was for */
    uint32_t flags;
    uint8_t runtime;
    uint64_t drain; /* of a region: the one whose drain it is part of, for whoever looks at drains; 0: none */
    bool cleanup;   /* of a region: it is in a cleanup scope or a drain region, or is one */
    char label[64]; /* of a region: its exchange, "GET /" */
} ebb__thing;

typedef struct ebb__made { /* a future */
    uint64_t number;
    uint32_t what, site;
    uint32_t operation;
    uint64_t since;
    bool ended;
} ebb__made;

typedef struct ebb__story {
    ebb_allocator allocator;
    uint8_t runtime_id;
    char *strings[EBB__STORY_STRINGS];
    ebb__map tasks, regions, futures;
    uint64_t now, poll_end, polling; /* polling: the task that is being polled */
    uint64_t poll_from;
    uint64_t ended_task, ended_region; /* by the last event; forgotten with the next */
    bool no_memory;                    /* something is missing: a name, a task */
    bool first_file, last_file;        /* of those that are exported together */
    uint32_t process;       /* its number in an export: the runtime's, or more if another file has that */
    void *picture;          /* of serve/chrome_flow.c */
    const ebb__map *stamps; /* of all messages that came, in any of these; NULL: none are looked for */
} ebb__story;

void ebb__story_begin(ebb__story *s, uint8_t runtime_id, ebb_allocator a);
/* Takes an event. Call it after what looks at the state before the event. A task or region that it ends can be looked at
 * until the next one; so a story of any length has memory for what is alive. */
void ebb__story_take(ebb__story *s, const ebb__line *line);
void ebb__story_end(ebb__story *s);

uint64_t ebb__story_time(const ebb__story *s, const ebb_event *ev);
const char *ebb__story_string(const ebb__story *s, uint32_t number); /* "": none */
/* NULL: not known. */
ebb__thing *ebb__story_task(const ebb__story *s, uint64_t id);
ebb__thing *ebb__story_region(const ebb__story *s, uint64_t id);
ebb__made *ebb__story_future(const ebb__story *s, uint64_t number);
/* "worker jobs.c:12 #1.4.2": the name, if it has one, else the site; and the id. */
void ebb__story_title(const ebb__story *s, const ebb__thing *t, char *out, size_t room);
/* What a task waits for: "sleep", "read begun at jobs.c:12". */
void ebb__story_wait(const ebb__story *s, uint32_t what, uint64_t future, char *out, size_t room);

#endif
