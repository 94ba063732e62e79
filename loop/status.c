/* Failures of libuv as statuses. */
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

/* libuv makes strings, which it never frees, for codes that it does not know: these are not asked for. */
static bool is_uvs(ebb_status st) {
    char name[32];
    if (st >= EBB_UV(0) || st < EBB_UV(-8192)) return false;
    uv_err_name_r(st - EBB_UV(0), name, sizeof name);
    return strncmp(name, "Unknown", 7) != 0;
}

const char *ebb_loop_status_name(ebb_status st) {
    return is_uvs(st) ? uv_err_name(st - EBB_UV(0)) : ebb_status_name(st);
}

const char *ebb_loop_status_text(ebb_status st) {
    return is_uvs(st) ? uv_strerror(st - EBB_UV(0)) : ebb_status_text(st);
}
