/* A machine as `ebb doctor` fears it, for LD_PRELOAD: old libraries, a full disk, a disk that does not sync. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

const char *sqlite3_libversion(void);
const char *uv_version_string(void);
int fsync(int fd);

const char *sqlite3_libversion(void) {
    return "2.8.17";
}

const char *uv_version_string(void) {
    return "1.0.0";
}

/* Blocks of a MiB; FREE_MIB are free. */
int statvfs(const char *restrict path, struct statvfs *restrict out) {
    const char *mib = getenv("FREE_MIB");
    (void)path;
    memset(out, 0, sizeof *out);
    out->f_frsize = 1 << 20;
    out->f_bavail = mib != NULL ? strtoul(mib, NULL, 10) : 0;
    return 0;
}

int fsync(int fd) {
    (void)fd;
    errno = EIO;
    return -1;
}
