/* durable/history.h - histories as clients read them: page by page, on a fiber. */
#ifndef EBB_DURABLE_HISTORY_H
#define EBB_DURABLE_HISTORY_H

#include "durable/client.h"

/* Reads turns 1 to `upto` of the row's execution. Adds them to `o` (NULL: not), and calls `each` (NULL: not) with every
 * event. EBB_ERR_CORRUPT and EBB_ERR_VERSION name the turn; EBB_ERR_ORACLE as ebb__outstanding_add. */
ebb_status ebb__history_read(ebb_cx *cx, ebb__client_op *op, const ebb_provider_instance_row *row,
                             uint64_t upto, ebb__outstanding *o,
                             void (*each)(void *arg, const ebb_provider_turn_row *row, const ebb__event *e),
                             void *arg);

#endif
