/* cli/doctor_machine.c - what `ebb doctor` looks at on any machine: libraries, limits, memory maps, the clock. */
#include <inttypes.h>
#include <jansson.h>
#include <libpq-fe.h>
#include <nghttp2/nghttp2.h>
#include <openssl/crypto.h>
#include <openssl/opensslv.h>
#include <pg_config.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <uv.h>

#include "cli/doctor.h"

/* ---- libraries --------------------------------------------------------------------------------------- */

/* A version as 0xMMmmpp, so that it can be compared. */
static unsigned read_version(const char *text) {
    unsigned part[3] = {0};
    (void)sscanf(text, "%3u.%3u.%3u", &part[0], &part[1], &part[2]);
    return part[0] << 16 | part[1] << 8 | part[2];
}

static void check_library(ebb__doctor *d, const char *name, const char *built, const char *runs) {
    static const char advice[] =
        "The command was built for another version of this library. Install that one, or "
        "build the command again.";
    const unsigned was = read_version(built), is = read_version(runs);
    const ebb__verdict v = was >> 16 != is >> 16 ? EBB__DOCTOR_FAIL
                           : is < was            ? EBB__DOCTOR_WARN
                                                 : EBB__DOCTOR_OK;
    ebb__doctor_say(d, v, name, advice, "%s, built with %s", runs, built);
}

static void check_libraries(ebb__doctor *d) {
    char uv[32], pq[32];
    (void)snprintf(uv, sizeof uv, "%d.%d.%d", UV_VERSION_MAJOR, UV_VERSION_MINOR, UV_VERSION_PATCH);
    (void)snprintf(pq, sizeof pq, "%d.%d", PQlibVersion() / 10000, PQlibVersion() % 10000);
    check_library(d, "libuv", uv, uv_version_string());
    check_library(d, "openssl", OPENSSL_VERSION_STR, OpenSSL_version(OPENSSL_VERSION_STRING));
    check_library(d, "nghttp2", NGHTTP2_VERSION, nghttp2_version(0)->version_str);
    check_library(d, "sqlite", SQLITE_VERSION, sqlite3_libversion());
    check_library(d, "libpq", PG_VERSION, pq);
    check_library(d, "jansson", JANSSON_VERSION, jansson_version_str());
}

/* ---- limits ------------------------------------------------------------------------------------------ */

static void check_descriptors(ebb__doctor *d) {
    enum { LEAST = 256, WANTED = 4096 };
    static const char advice[] =
        "Each connection needs one, and the store some. Raise the limit: `ulimit -n 65536`, or "
        "LimitNOFILE=65536 in the unit.";
    struct rlimit is;
    if (getrlimit(RLIMIT_NOFILE, &is) != 0) return;
    const ebb__verdict v = is.rlim_cur < LEAST    ? EBB__DOCTOR_FAIL
                           : is.rlim_cur < WANTED ? EBB__DOCTOR_WARN
                                                  : EBB__DOCTOR_OK;
    ebb__doctor_say(d, v, "descriptors", advice,
                    "%" PRIu64 " open files, of which at least %d should be allowed", (uint64_t)is.rlim_cur,
                    WANTED);
}

static void check_file_size(ebb__doctor *d) {
    static const char advice[] = "A store that reaches it fails. Lift the limit: `ulimit -f unlimited`, or "
                                 "LimitFSIZE=infinity in the unit.";
    struct rlimit is;
    if (getrlimit(RLIMIT_FSIZE, &is) != 0) return;
    if (is.rlim_cur == RLIM_INFINITY)
        ebb__doctor_say(d, EBB__DOCTOR_OK, "file-size", NULL, "files may grow without a limit");
    else
        ebb__doctor_say(d, EBB__DOCTOR_WARN, "file-size", advice, "a file may have at most %" PRIu64 " bytes",
                        (uint64_t)is.rlim_cur);
}

static uint64_t read_number(const char *path) {
    uint64_t n = 0;
    FILE *in = fopen(path, "r");
    if (in != NULL && fscanf(in, "%" SCNu64, &n) != 1) n = 0;
    if (in != NULL) fclose(in);
    return n;
}

/* A stack is a mapping, and its guard another. */
static void check_maps(ebb__doctor *d) {
    enum { LEAST = 16384 };
    static const char advice[] = "Each fiber's stack takes two maps. Raise the limit: "
                                 "`sysctl -w vm.max_map_count=262144`.";
    const uint64_t most = read_number("/proc/sys/vm/max_map_count");
    if (most == 0) return; /* not this system, or it does not say */
    ebb__doctor_say(d, most < LEAST ? EBB__DOCTOR_WARN : EBB__DOCTOR_OK, "maps", advice,
                    "%" PRIu64 " memory maps: about %" PRIu64 " fibers at a time", most, most / 2);
}

/* ---- the clock --------------------------------------------------------------------------------------- */

static uint64_t now_ns(void) {
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * EBB_SECOND + (uint64_t)t.tv_nsec;
}

/* The smallest step is the clock's own: a busy machine only makes others larger. */
static void check_clock(ebb__doctor *d) {
    enum { LOOKS = 10000 };
    static const char advice[] =
        "The clock moves in large steps, or each look at it is a system call, as with hpet and "
        "acpi_pm: timers are late and each task costs more. Choose tsc or kvm-clock, if the "
        "machine has it.";
    uint64_t step = UINT64_MAX, last = now_ns();
    char source[32] = "";
    FILE *in = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
    if (in != NULL && fscanf(in, "%31s", source) != 1) source[0] = 0;
    if (in != NULL) fclose(in);
    for (int i = 0; i < LOOKS; i++) {
        const uint64_t now = now_ns();
        if (now > last && now - last < step) step = now - last;
        last = now;
    }
    const bool slow =
        strcmp(source, "hpet") == 0 || strcmp(source, "acpi_pm") == 0 || strcmp(source, "jiffies") == 0;
    ebb__doctor_say(d, slow || step > EBB_MS ? EBB__DOCTOR_WARN : EBB__DOCTOR_OK, "clock", advice,
                    "%s%ssteps of %" PRIu64 " ns", source, source[0] != 0 ? ", " : "", step);
}

void ebb__doctor_machine(ebb__doctor *d) {
    check_libraries(d);
    check_descriptors(d);
    check_file_size(d);
    check_maps(d);
    check_clock(d);
}
