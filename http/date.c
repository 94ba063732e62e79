/* The date header. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>

#include "http/http.h"

/* Computed at most once a second. */
const char *ebb__server_date(ebb_http_server *s) {
    uint64_t second = ebb__now(s->loop->rt) / EBB_SECOND + 1;
    if (second == s->date_at) return s->date;
    struct timespec now;
    struct tm tm;
    s->loop->os->wall_clock(&now);
    if (gmtime_r(&now.tv_sec, &tm) == NULL) return s->date;
    /* Not strftime: the names of days are English in every locale. */
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    snprintf(s->date, sizeof s->date, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday % 7],
             tm.tm_mday % 100, months[tm.tm_mon % 12], (tm.tm_year + 1900) % 10000, tm.tm_hour % 100,
             tm.tm_min % 100, tm.tm_sec % 100);
    s->date_at = second;
    return s->date;
}
