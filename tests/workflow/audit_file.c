/* Audit logs in files: what a process finds there, who may write, and what is left when it can't. */
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/workflow_world.h"
#include "tests/workflow/audit_doctor.h"

/* ---- a world with a file -------------------------------------------------------------------------- */

typedef struct file_world {
    char dir[32], path[64];
} file_world;

static int up(void **state) {
    file_world *f = calloc(1, sizeof *f);
    snprintf(f->dir, sizeof f->dir, "/tmp/ebb-audit-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof f->path, "%s/log", f->dir);
    *state = f;
    return 0;
}

static int down(void **state) {
    file_world *f = *state;
    (void)unlink(f->path);
    (void)rmdir(f->path);
    assert_int_equal(rmdir(f->dir), 0);
    free(f);
    return 0;
}
#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, up, down)

/* The whole file, 0-terminated; free it. */
static char *contents(const file_world *f, size_t *n) {
    struct stat s;
    int fd = open(f->path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &s) == 0);
    *n = (size_t)s.st_size;
    char *bytes = calloc(1, *n + 1);
    assert_int_equal(read(fd, bytes, *n), *n);
    (void)close(fd);
    return bytes;
}

static void put_contents(const file_world *f, const char *bytes, size_t n) {
    int fd = open(f->path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    (void)close(fd);
}

static ebb_audit *open_log(const file_world *f) {
    ebb_audit *audit = NULL;
    assert_int_equal(ebb_audit_open(ebb_libc_allocator(), f->path, &audit), EBB_OK);
    return audit;
}

static ebb_status try_open(const char *path) {
    ebb_audit *audit = NULL;
    ebb_status st = ebb_audit_open(ebb_libc_allocator(), path, &audit);
    if (st == EBB_OK) ebb_audit_close(audit);
    else assert_null(audit);
    return st;
}

static ebb_audit_verdict verdict(const file_world *f) {
    ebb_audit_verdict v;
    size_t n;
    char *bytes = contents(f, &n);
    if (ebb_audit_verify(ebb_libc_allocator(), bytes, n, &v) != EBB_OK)
        fail_msg("line %" PRIu64 ": %s: %s\n%s", v.line, v.invariant, v.text, bytes);
    free(bytes);
    return v;
}

static size_t lowest_free_descriptor(void) {
    int fd = dup(0);
    assert_true(fd >= 0);
    (void)close(fd);
    return (size_t)fd;
}

/* ---- programs ------------------------------------------------------------------------------------- */

/* One that is stopped, and one that is not even asked. */
static void run_to_the_end(ebb_audit *audit) {
    world *w = world_new(NULL, true);
    ebb_workflow wf = ebb_workflow_open(
        w->host, &(ebb_workflow_opts){.type = &ebb_workflow_rollout_cancel, .audit = audit});
    assert_int_equal(ebb_workflow_request(w->host, wf, EBB_CANCEL_USER, "done"), EBB_OK);
    world_finish(w);
    world_end(w);
}

/* In a process of its own, which ends without a word: one IDLE, one DRAINING for a reason of two links. */
static void die_in_the_middle(const file_world *f) {
    pid_t child = fork();
    if (child == 0) {
        world *w = world_new(NULL, true);
        ebb_audit *audit = open_log(f);
        ebb_workflow_opts outer = {.type = &ebb_workflow_lifecycle_shutdown, .name = "all", .audit = audit};
        ebb_workflow o = ebb_workflow_open(w->host, &outer);
        ebb_workflow_opts inner = {.type = &ebb_workflow_rollout_cancel,
                                   .name = "v42",
                                   .parent = ebb_workflow_region(w->host, o),
                                   .no_force = true};
        ebb_workflow i = ebb_workflow_open(w->host, &inner);
        ebb_workflow_opts other = {.type = &ebb_workflow_publish_abort, .audit = audit};
        (void)ebb_workflow_open(w->host, &other);
        (void)puppet_start(w, ebb_workflow_region(w->host, i), IGNORING);
        (void)ebb_workflow_request(w->host, o, EBB_CANCEL_TIMEOUT, "too slow");
        world_settle(w);
        world_pass(w, 3 * EBB_MS);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- opening -------------------------------------------------------------------------------------- */

static void a_new_file_starts_with_its_version_and_ends_where_it_is_closed(void **state) {
    const file_world *f = *state;
    struct stat s;
    size_t n;
    ebb_audit *audit = open_log(f);
    run_to_the_end(audit);
    ebb_audit_close(audit);
    char *bytes = contents(f, &n);
    assert_int_equal(strncmp(bytes, "{\"seq\":1,\"at\":\"20", 17), 0);
    assert_non_null(
        strstr(bytes, "\"evidence\":{\"audit\":\"ebb-audit-v2\",\"contract\":\"ebb-cancel-v2\"}"));
    assert_int_equal(bytes[n - 1], '\n');
    free(bytes);
    assert_int_equal(stat(f->path, &s), 0);
    assert_int_equal(s.st_mode & 0133, 0); /* 0644, less what the umask takes */
    ebb_audit_verdict v = verdict(f);
    assert_int_equal(v.lines, 7);
    assert_int_equal(v.stopped, 1);
    assert_int_equal(v.unfinished, 0);
}

static void numbers_go_on_in_a_log_that_is_opened_again(void **state) {
    const file_world *f = *state;
    for (uint64_t i = 1; i <= 3; i++) {
        ebb_audit_unfinished u;
        ebb_audit *audit = open_log(f);
        assert_int_equal(ebb_audit_unfinished_at(audit, 0, &u), EBB_ERR_INVALID);
        run_to_the_end(audit);
        ebb_audit_close(audit);
        assert_int_equal(verdict(f).stopped, i);
        assert_int_equal(verdict(f).lines, 7 * i);
    }
}

static void a_line_is_in_the_file_when_the_call_returns(void **state) {
    const file_world *f = *state;
    world *w = world_new(NULL, true);
    ebb_audit *audit = open_log(f);
    assert_int_equal(verdict(f).lines, 1);
    ebb_workflow wf =
        ebb_workflow_open(w->host, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .audit = audit});
    assert_int_equal(verdict(f).lines, 2);
    assert_int_equal(ebb_workflow_request(w->host, wf, EBB_CANCEL_USER, ""), EBB_OK);
    assert_int_equal(verdict(f).lines, 4);
    world_end(w);
    ebb_audit_close(audit);
}

static void what_is_no_file_to_append_to_is_an_error_with_its_name(void **state) {
    file_world *f = *state;
    size_t before = lowest_free_descriptor();
    char deep[96];
    assert_int_equal(try_open(NULL), EBB_ERRNO(EINVAL));
    assert_int_equal(try_open(""), EBB_ERRNO(ENOENT));
    assert_int_equal(try_open("/tmp"), EBB_ERRNO(EISDIR));
    assert_int_equal(try_open("/dev/full"), EBB_ERRNO(EINVAL));
    assert_int_equal(try_open("/dev/null"), EBB_ERRNO(EINVAL));
    snprintf(deep, sizeof deep, "%s/deeper", f->path);
    assert_int_equal(try_open(deep), EBB_ERRNO(ENOENT));
    put_contents(f, "", 0);
    assert_int_equal(try_open(deep), EBB_ERRNO(ENOTDIR));
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    assert_int_equal(try_open(f->path), EBB_ERRNO(EINVAL));
    assert_int_equal(lowest_free_descriptor(), before);
}

static void a_file_that_may_not_be_written_is_an_error(void **state) {
    const file_world *f = *state;
    if (geteuid() == 0) { /* root may write anything: as somebody else, in a process of its own */
        pid_t child = fork();
        if (child == 0) _exit(setuid(65534) != 0 || try_open(f->path) != EBB_ERRNO(EACCES));
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        return;
    }
    put_contents(f, "", 0);
    assert_int_equal(chmod(f->path, 0444), 0);
    assert_int_equal(try_open(f->path), EBB_ERRNO(EACCES));
}

/* ---- locks ---------------------------------------------------------------------------------------- */

static void a_log_that_is_open_is_busy_for_everybody_else(void **state) {
    const file_world *f = *state;
    ebb_audit *audit = open_log(f);
    assert_int_equal(try_open(f->path), EBB_ERR_BUSY);
    pid_t child = fork();
    if (child == 0) _exit(try_open(f->path) != EBB_ERR_BUSY);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(verdict(f).lines, 1);
    ebb_audit_close(audit);
    assert_int_equal(try_open(f->path), EBB_OK);
}

static void a_process_that_is_killed_lets_go_of_its_log(void **state) {
    const file_world *f = *state;
    int ready[2];
    char c;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)open_log(f);
        (void)!write(ready[1], "x", 1);
        for (;;) pause();
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(try_open(f->path), EBB_ERR_BUSY);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(try_open(f->path), EBB_OK);
    assert_int_equal(verdict(f).lines, 2);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

/* ---- what a process before has left --------------------------------------------------------------- */

static void what_was_not_finished_is_told_and_noted(void **state) {
    const file_world *f = *state;
    die_in_the_middle(f);
    assert_int_equal(verdict(f).unfinished, 3);
    ebb_audit *audit = open_log(f);
    static const struct {
        const char *workflow, *name;
        ebb_workflow_state state;
        uint64_t line;
    } expected[] = {
        {"lifecycle_shutdown", "all", EBB_WORKFLOW_DRAINING, 6},
        {"rollout_cancel", "v42", EBB_WORKFLOW_DRAINING, 8},
        {"publish_abort", "", EBB_WORKFLOW_IDLE, 4},
    };
    for (size_t i = 0; i < 3; i++) {
        ebb_audit_unfinished u;
        assert_int_equal(ebb_audit_unfinished_at(audit, i, &u), EBB_OK);
        assert_int_equal(u.number, i + 1);
        assert_string_equal(u.workflow, expected[i].workflow);
        assert_string_equal(u.name, expected[i].name);
        assert_int_equal(u.state, expected[i].state);
        assert_int_equal(u.line, expected[i].line);
    }
    ebb_audit_unfinished none;
    assert_int_equal(ebb_audit_unfinished_at(audit, 3, &none), EBB_ERR_INVALID);
    run_to_the_end(audit);
    ebb_audit_close(audit);
    ebb_audit_verdict v = verdict(f);
    assert_int_equal(v.unfinished, 0);
    assert_int_equal(v.stopped, 3);
    assert_int_equal(v.lines, 8 + 1 + 3 + 6);
    size_t n;
    char *bytes = contents(f, &n);
    assert_non_null(strstr(
        bytes, "\"event\":\"interrupted\",\"code\":null,\"workflow\":\"rollout_cancel\",\"name\":\"v42\","
               "\"id\":2,\"parent\":1,\"from\":\"DRAINING\",\"to\":\"DRAINING\",\"elapsed_ms\":0.000,"
               "\"budget_ms\":3000.000,\"epoch\":1,\"in_flight\":1,\"inside\":0,\"refused\":0,\"reason\":[{"
               "\"kind\":\"PARENT\","
               "\"severity\":2,\"message\":\"\"},{\"kind\":\"TIMEOUT\",\"severity\":2,\"message\":"
               "\"too slow\"}],\"evidence\":{\"line\":8}"));
    free(bytes);
    audit = open_log(f);
    assert_int_equal(ebb_audit_unfinished_at(audit, 0, &none), EBB_ERR_INVALID); /* once is enough */
    ebb_audit_close(audit);
}

/* As a process leaves it that dies while it writes. The line that was not whole never happened. */
static void a_log_that_is_cut_anywhere_in_its_last_line_goes_on(void **state) {
    const file_world *f = *state;
    size_t n, last;
    die_in_the_middle(f);
    char *bytes = contents(f, &n);
    for (last = n - 1; bytes[last - 1] != '\n'; last--) continue;
    for (size_t cut = last; cut < n; cut++) {
        put_contents(f, bytes, cut);
        ebb_audit *audit = open_log(f);
        ebb_audit_unfinished u;
        assert_int_equal(ebb_audit_unfinished_at(audit, 1, &u), EBB_OK);
        assert_int_equal(u.state, EBB_WORKFLOW_CANCEL_REQUESTED);
        run_to_the_end(audit);
        ebb_audit_close(audit);
        assert_int_equal(verdict(f).lines, 7 + 1 + 3 + 6);
        size_t m;
        char dropped[40], *after = contents(f, &m);
        snprintf(dropped, sizeof dropped, "\"dropped\":%zu}", cut - last);
        assert_int_equal(strstr(after, dropped) != NULL, cut > last);
        assert_memory_equal(after, bytes, last);
        free(after);
    }
    free(bytes);
}

static void a_process_that_dies_while_it_notes_the_unfinished_leaves_the_rest_to_the_next(void **state) {
    const file_world *f = *state;
    size_t n;
    die_in_the_middle(f);
    ebb_audit_close(open_log(f));
    char *bytes = contents(f, &n);
    for (size_t taken = 0; taken < 3; taken++) { /* takes the last lines away, one by one */
        ebb_audit_unfinished u;
        do n--;
        while (bytes[n - 1] != '\n');
        put_contents(f, bytes, n);
        ebb_audit *audit = open_log(f);
        assert_int_equal(ebb_audit_unfinished_at(audit, taken, &u), EBB_OK);
        assert_int_equal(u.number, 3);
        assert_int_equal(ebb_audit_unfinished_at(audit, taken + 1, &u), EBB_ERR_INVALID);
        ebb_audit_close(audit);
        assert_int_equal(verdict(f).unfinished, 0);
    }
    free(bytes);
}

static void a_log_that_is_edited_anywhere_is_corrupt_and_stays_as_it_is(void **state) {
    const file_world *f = *state;
    size_t n, m;
    ebb_audit *audit = open_log(f);
    run_to_the_end(audit);
    ebb_audit_close(audit);
    char *bytes = contents(f, &n);
    size_t before = lowest_free_descriptor();
    for (size_t i = 0; i + 1 < n; i += 7) {
        bytes[i] = (char)(bytes[i] ^ 1);
        put_contents(f, bytes, n);
        assert_int_equal(try_open(f->path), EBB_ERR_CORRUPT);
        char *after = contents(f, &m);
        assert_int_equal(m, n);
        assert_memory_equal(after, bytes, n);
        free(after);
        bytes[i] = (char)(bytes[i] ^ 1);
    }
    assert_int_equal(lowest_free_descriptor(), before);
    put_contents(f, bytes, n);
    assert_int_equal(try_open(f->path), EBB_OK);
    free(bytes);
}

static void a_log_without_one_of_its_lines_is_corrupt(void **state) {
    const file_world *f = *state;
    size_t n;
    ebb_audit *audit = open_log(f);
    run_to_the_end(audit);
    ebb_audit_close(audit);
    char *bytes = contents(f, &n), *stop;
    for (char *line = bytes; (stop = strchr(line, '\n')) != NULL && stop[1] != 0; line = stop + 1) {
        char *without = strdup(bytes);
        size_t at = (size_t)(line - bytes), length = (size_t)(stop + 1 - line);
        memmove(without + at, without + at + length, n - at - length + 1);
        put_contents(f, without, n - length);
        assert_int_equal(try_open(f->path), EBB_ERR_CORRUPT);
        free(without);
    }
    free(bytes);
}

static void a_log_of_another_version_is_corrupt(void **state) {
    const file_world *f = *state;
    lines *l = calloc(1, sizeof *l);
    size_t n;
    ebb_audit_close(open_log(f));
    char *bytes = contents(f, &n);
    split(l, bytes);
    replace(l, 0, "ebb-audit-v2", "ebb-audit-v9");
    seal(l);
    char *later = join(l);
    put_contents(f, later, strlen(later));
    assert_int_equal(try_open(f->path), EBB_ERR_CORRUPT);
    free(later);
    free(bytes);
    free(l);
}

/* Nothing of a file that is no log may be cut off, even if it has no newline at its end. */
static void files_of_other_kinds_are_corrupt_and_stay_as_they_are(void **state) {
    static const char *const files[] = {
        "a key without a newline", "a line\n", "\n", "{\"seq\":2,", "{\"sequence", "{}\n"};
    const file_world *f = *state;
    char big[70000];
    size_t n;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        put_contents(f, files[i], strlen(files[i]));
        assert_int_equal(try_open(f->path), EBB_ERR_CORRUPT);
        char *after = contents(f, &n);
        assert_string_equal(after, files[i]);
        free(after);
    }
    memset(big, 'x', sizeof big);
    memcpy(big, "{\"seq\":1,\"at\":\"", 15);
    put_contents(f, big, 32768 + 1);
    assert_int_equal(try_open(f->path), EBB_ERR_CORRUPT);
    put_contents(f, big, sizeof big);
    assert_int_equal(try_open(f->path), EBB_ERR_CORRUPT);
    put_contents(f, "{\"seq\":1,\"at", 12);
    assert_int_equal(try_open(f->path), EBB_OK);
    assert_int_equal(verdict(f).lines, 1);
}

/* ---- no room -------------------------------------------------------------------------------------- */

/* Lets files grow to `bytes` only, in this process, until lifted. */
static void limit_files(rlim_t bytes) {
    struct rlimit r;
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &r), 0);
    r.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
}

static void a_line_that_does_not_fit_is_taken_back_and_the_next_that_fits_tells(void **state) {
    const file_world *f = *state;
    size_t n, m;
    world *w = world_new(NULL, true);
    ebb_audit *audit = open_log(f);
    ebb_workflow wf =
        ebb_workflow_open(w->host, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .audit = audit});
    char *before = contents(f, &n);
    limit_files(n + 100); /* a part of the next line */
    assert_int_equal(ebb_workflow_extend(w->host, wf, EBB_MS), EBB_ERR_CANCEL_INVALID_PHASE);
    ebb_workflow_report r;
    assert_int_equal(ebb_workflow_report_of(w->host, wf, &r), EBB_OK);
    limit_files(RLIM_INFINITY);
    assert_int_equal(r.audit, EBB_ERRNO(EFBIG));
    char *after = contents(f, &m);
    assert_int_equal(m, n);
    assert_memory_equal(after, before, n);
    free(after);
    assert_int_equal(ebb_workflow_extend(w->host, wf, EBB_MS), EBB_ERR_CANCEL_INVALID_PHASE);
    after = contents(f, &m);
    assert_non_null(strstr(after, "\"lost\":1,"));
    ebb_audit_verdict v;
    assert_int_equal(ebb_audit_verify(ebb_libc_allocator(), after, m, &v), EBB_ERR_ORACLE);
    assert_int_equal(v.line, 3);
    assert_string_equal(v.invariant, "audit-complete");
    free(after);
    free(before);
    world_end(w);
    ebb_audit_close(audit);
    assert_int_equal(try_open(f->path), EBB_OK); /* its chain is whole */
}

/* A file that can't shrink keeps the half of a line that did not fit. Nothing may be written after it. */
static void a_half_line_that_cannot_be_taken_back_is_the_last_that_is_written(void **state) {
    char path[40], bytes[8192] = "";
    (void)state;
    int fd = memfd_create("log", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    world *w = world_new(NULL, true);
    ebb_audit *audit = NULL;
    assert_int_equal(ebb_audit_open(ebb_libc_allocator(), path, &audit), EBB_OK);
    ebb_workflow wf =
        ebb_workflow_open(w->host, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .audit = audit});
    ssize_t n = pread(fd, bytes, sizeof bytes, 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    limit_files((rlim_t)n + 100);
    assert_int_equal(ebb_workflow_extend(w->host, wf, EBB_MS), EBB_ERR_CANCEL_INVALID_PHASE);
    limit_files(RLIM_INFINITY);
    assert_int_equal(pread(fd, bytes, sizeof bytes, 0), n + 100);
    world_end(w); /* it is asked to stop, and none of its lines can be written */
    assert_int_equal(pread(fd, bytes, sizeof bytes, 0), n + 100);
    ebb_audit_close(audit);
    ebb_audit_verdict v;
    assert_int_equal(ebb_audit_verify(ebb_libc_allocator(), bytes, (size_t)n + 100, &v), EBB_OK);
    assert_int_equal(v.lines, 2);
    assert_true(v.cut);
    assert_int_equal(try_open(path), EBB_ERRNO(EPERM));
    (void)close(fd);
}

static void a_log_that_has_no_room_for_its_start_is_not_opened(void **state) {
    const file_world *f = *state;
    size_t before = lowest_free_descriptor(), n;
    limit_files(50);
    ebb_status st = try_open(f->path);
    limit_files(RLIM_INFINITY);
    assert_int_equal(st, EBB_ERRNO(EFBIG));
    char *after = contents(f, &n);
    assert_int_equal(n, 0);
    free(after);
    assert_int_equal(lowest_free_descriptor(), before);
    assert_int_equal(try_open(f->path), EBB_OK);
}

static void a_log_that_has_no_room_to_note_the_unfinished_is_not_opened_and_can_be_later(void **state) {
    const file_world *f = *state;
    size_t n, m;
    die_in_the_middle(f);
    char *bytes = contents(f, &n);
    for (size_t room = 0; room < 3000; room += 50) {
        put_contents(f, bytes, n);
        limit_files(n + room);
        ebb_status st = try_open(f->path);
        limit_files(RLIM_INFINITY);
        char *after = contents(f, &m);
        assert_int_equal(after[m - 1], '\n');
        free(after);
        if (st != EBB_OK) assert_int_equal(st, EBB_ERRNO(EFBIG));
        assert_int_equal(verdict(f).unfinished == 0, st == EBB_OK);
        assert_int_equal(try_open(f->path), EBB_OK);
        assert_int_equal(verdict(f).unfinished, 0);
    }
    free(bytes);
}

static void no_memory_leaves_nothing_open_and_every_line_whole(void **state) {
    const file_world *f = *state;
    size_t n, before = lowest_free_descriptor();
    die_in_the_middle(f);
    char *bytes = contents(f, &n);
    uint64_t nth = 0;
    ebb_status st = EBB_ERR_NOMEM;
    while (st == EBB_ERR_NOMEM) {
        ebb_failing memory = {.inner = ebb_libc_allocator(), .fail_at = ++nth};
        ebb_audit *audit = NULL;
        put_contents(f, bytes, n);
        st = ebb_audit_open(ebb_failing_allocator(&memory), f->path, &audit);
        if (st == EBB_OK) ebb_audit_close(audit);
        else assert_null(audit);
        assert_int_equal(memory.live, 0);
        assert_int_equal(memory.live_bytes, 0);
        assert_int_equal(lowest_free_descriptor(), before);
        assert_int_equal(verdict(f).unfinished, st == EBB_OK ? 0 : 3);
    }
    assert_int_equal(st, EBB_OK);
    assert_true(nth > 4);
    free(bytes);
}

/* Longer than any buffer that reads it. */
static void a_long_log_is_opened_again(void **state) {
    const file_world *f = *state;
    ebb_audit *audit = open_log(f);
    world *w = world_new(NULL, false);
    enum { N = 2000 };
    for (int i = 0; i < N; i++) {
        ebb_workflow wf = ebb_workflow_open(
            w->host, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .audit = audit});
        assert_int_equal(ebb_workflow_request(w->host, wf, EBB_CANCEL_USER, "one of many"), EBB_OK);
        if (i % 2 == 0) world_finish(w);
    }
    size_t n;
    char *bytes = contents(f, &n);
    world_finish(w);
    world_end(w);
    ebb_audit_close(audit);
    assert_true(n > 1000000);
    put_contents(f, bytes, n - 100); /* one of them was not told to the end */
    free(bytes);
    audit = open_log(f);
    run_to_the_end(audit);
    ebb_audit_close(audit);
    ebb_audit_verdict v = verdict(f);
    assert_int_equal(v.unfinished, 0);
    assert_int_equal(v.stopped, N + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_FILE(a_new_file_starts_with_its_version_and_ends_where_it_is_closed),
        WITH_FILE(numbers_go_on_in_a_log_that_is_opened_again),
        WITH_FILE(a_line_is_in_the_file_when_the_call_returns),
        WITH_FILE(what_is_no_file_to_append_to_is_an_error_with_its_name),
        WITH_FILE(a_file_that_may_not_be_written_is_an_error),
        WITH_FILE(a_log_that_is_open_is_busy_for_everybody_else),
        WITH_FILE(a_process_that_is_killed_lets_go_of_its_log),
        WITH_FILE(what_was_not_finished_is_told_and_noted),
        WITH_FILE(a_log_that_is_cut_anywhere_in_its_last_line_goes_on),
        WITH_FILE(a_process_that_dies_while_it_notes_the_unfinished_leaves_the_rest_to_the_next),
        WITH_FILE(a_log_that_is_edited_anywhere_is_corrupt_and_stays_as_it_is),
        WITH_FILE(a_log_without_one_of_its_lines_is_corrupt),
        WITH_FILE(a_log_of_another_version_is_corrupt),
        WITH_FILE(files_of_other_kinds_are_corrupt_and_stay_as_they_are),
        WITH_FILE(a_line_that_does_not_fit_is_taken_back_and_the_next_that_fits_tells),
        cmocka_unit_test(a_half_line_that_cannot_be_taken_back_is_the_last_that_is_written),
        WITH_FILE(a_log_that_has_no_room_for_its_start_is_not_opened),
        WITH_FILE(a_log_that_has_no_room_to_note_the_unfinished_is_not_opened_and_can_be_later),
        WITH_FILE(no_memory_leaves_nothing_open_and_every_line_whole),
        WITH_FILE(a_long_log_is_opened_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
