/* Statuses for libuv's errors. */
#define _POSIX_C_SOURCE 200809L
#include "loop/loop.h"

ebb_status ebb__uv_status(int code) {
    switch (code) {
    case UV_EOF: return EBB_ERR_EOF;
    case UV_ENOMEM: return EBB_ERR_NOMEM;
    case UV_ECANCELED: return EBB_CANCELLED;
    default: return EBB_UV(code);
    }
}
