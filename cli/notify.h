/* cli/notify.h - what a service tells its service manager, by the protocol of sd_notify(3). */
#ifndef EBB_CLI_NOTIFY_H
#define EBB_CLI_NOTIFY_H

#include <stdbool.h>

/* Whether somebody is to be told: $NOTIFY_SOCKET is set. */
bool ebb__notify_is_wanted(void);
/* Sends one datagram, "READY=1\nSTATUS=...", to the socket in $NOTIFY_SOCKET: a path, or a name with '@' first. A failure
 * is printed, and ends nothing: the manager will run into its timeout. Without the variable it does nothing. */
__attribute__((format(printf, 1, 2))) void ebb__notify(const char *format, ...);

#endif
