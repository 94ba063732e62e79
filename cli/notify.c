/* cli/notify.c - sd_notify(3) without its library: one datagram a message, to a socket of the file system or of the
 * abstract namespace. */
#define _DEFAULT_SOURCE
#include "cli/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/cli.h"

static const char variable[] = "NOTIFY_SOCKET";

bool ebb__notify_is_wanted(void) {
    const char *to = getenv(variable);
    return to != NULL && to[0] != 0;
}

/* Returns the length of the address; 0: it is none. The name of an abstract socket is not 0-terminated. */
static socklen_t address_of(const char *to, struct sockaddr_un *at) {
    const size_t n = strlen(to);
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    if ((to[0] != '/' && to[0] != '@') || n < 2 || n >= sizeof at->sun_path) return 0;
    memcpy(at->sun_path, to, n);
    if (to[0] == '@') at->sun_path[0] = 0;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (to[0] == '/'));
}

/* Does not wait for a manager that does not read: it has the messages before. */
static bool send_to(const char *to, const char *text, size_t n) {
    struct sockaddr_un at;
    const socklen_t length = address_of(to, &at);
    errno = EINVAL;
    int fd = length != 0 ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    bool sent = fd >= 0 && sendto(fd, text, n, MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&at,
                                  length) == (ssize_t)n;
    const int why = errno;
    if (fd >= 0) (void)close(fd);
    errno = why;
    return sent;
}

void ebb__notify(const char *format, ...) {
    char text[1024];
    va_list args;
    if (!ebb__notify_is_wanted()) return;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0) return;
    const size_t length = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    if (!send_to(getenv(variable), text, length))
        ebb__cli_error("can't tell the service manager at %s='%s': %s", variable, getenv(variable),
                       strerror(errno));
}
