/* The token file. Tokens are compared by their digests, which have one length and are compared in constant time. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/serve.h"

bool ebb__token_digest(const char *at, size_t n, uint8_t digest[EBB__DIGEST]) {
    unsigned length = EBB__DIGEST;
    return EVP_Digest(at, n, digest, &length, EVP_sha256(), NULL) == 1 && length == EBB__DIGEST;
}

static ebb_status check_rights(const char *path, int fd) {
    struct stat is;
    if (fstat(fd, &is) != 0) return EBB_ERRNO(errno);
    if (!S_ISREG(is.st_mode))
        return ebb__dashboard_say(EBB_ERR_INVALID, "token file %s is not a regular file", path);
    if (is.st_uid != geteuid())
        return ebb__dashboard_say(EBB_ERR_INVALID, "token file %s is owned by user %u, not by user %u", path,
                                  (unsigned)is.st_uid, (unsigned)geteuid());
    if ((is.st_mode & 077) == 0) return EBB_OK;
    return ebb__dashboard_say(EBB_ERR_INVALID, "token file %s has mode %04o: others may use it; make it 0600",
                              path, (unsigned)is.st_mode & 07777);
}

static ebb_status check(const char *path, const char *token, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (token[i] > ' ' && token[i] <= '~') continue;
        return ebb__dashboard_say(EBB_ERR_INVALID,
                                  "token file %s has a token with byte %u: printable ASCII is allowed", path,
                                  (unsigned char)token[i]);
    }
    if (n >= EBB__TOKEN_LEAST && n <= EBB__TOKEN_MOST) return EBB_OK;
    return ebb__dashboard_say(EBB_ERR_INVALID,
                              "token file %s has a token of %s%zu characters: %d to %d are allowed", path,
                              n > EBB__TOKEN_MOST ? "at least " : "", n, EBB__TOKEN_LEAST, EBB__TOKEN_MOST);
}

static ebb_status read_token(const char *path, int fd, uint8_t digest[EBB__DIGEST]) {
    char line[EBB__TOKEN_MOST + 2];
    size_t n = 0;
    for (ssize_t got = 1; got > 0 && n < sizeof line; n += (size_t)got) {
        got = read(fd, line + n, sizeof line - n);
        if (got < 0) return EBB_ERRNO(errno);
    }
    const char *end = memchr(line, '\n', n);
    if (end != NULL) n = (size_t)(end - line);
    ebb_status st = check(path, line, n);
    if (st == EBB_OK && !ebb__token_digest(line, n, digest)) st = EBB_ERR_NOMEM;
    return st;
}

ebb_status ebb__token_read(const char *path, uint8_t digest[EBB__DIGEST]) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ebb_status st = fd < 0 ? EBB_ERRNO(errno) : check_rights(path, fd);
    if (st == EBB_OK) st = read_token(path, fd, digest);
    if (fd >= 0) (void)close(fd);
    if (st < EBB_STATUS_SYSTEM) (void)ebb__dashboard_say(st, "token file %s: %s", path, ebb_status_text(st));
    return st;
}
