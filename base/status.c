/* Names and texts of status codes, from two tables: ebb/status.def has Ebb's own, base/system.def those of the
 * system.
 *
 * wasm modules have no system, and leave its texts out to stay small. The module of web pages (EBB__PAGE) has no HTTP
 * and no machines either. */
#include <ebb/base.h>

#ifdef EBB__PAGE
#define KNOWN(status) ((int)(status) > (int)EBB_ERR_HTTP_RESET)
#else
#define KNOWN(status) true
#endif

/* libuv has codes down to -4095. */
static bool is_systems(ebb_status st) {
    return st < EBB_STATUS_SYSTEM && st >= EBB_STATUS_SYSTEM - 4095;
}

const char *ebb_status_name(ebb_status st) {
    switch ((int)st) {
#define EBB_STATUS(name, value, text)                                                                        \
    case name:                                                                                               \
        return KNOWN(name) ? #name : "EBB_USER";
#include <ebb/status.def>
#undef EBB_STATUS
#ifndef __wasm__
#define EBB_SYSTEM(number, name, text)                                                                       \
    case EBB_ERRNO(number):                                                                                  \
        return name;
#include "base/system.def"
#undef EBB_SYSTEM
#endif
    default: return is_systems(st) ? "EBB_SYSTEM" : "EBB_USER";
    }
}

const char *ebb_status_text(ebb_status st) {
    switch ((int)st) {
#define EBB_STATUS(name, value, text)                                                                        \
    case name:                                                                                               \
        return KNOWN(name) ? (text) : "";
#include <ebb/status.def>
#undef EBB_STATUS
#ifndef __wasm__
#define EBB_SYSTEM(number, name, text)                                                                       \
    case EBB_ERRNO(number):                                                                                  \
        return text;
#include "base/system.def"
#undef EBB_SYSTEM
#endif
    default: return is_systems(st) ? "a failure of the system" : "a status of the application's own";
    }
}
