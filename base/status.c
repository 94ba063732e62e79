/* Names and texts of status codes, from the one table in ebb/status.def. */
#include <ebb/base.h>

const char *ebb_status_name(ebb_status st) {
    switch (st) {
#define EBB_STATUS(name, value, text)                                                                        \
    case name:                                                                                               \
        return #name;
#include <ebb/status.def>
#undef EBB_STATUS
    default: return "EBB_USER";
    }
}

const char *ebb_status_text(ebb_status st) {
    switch (st) {
#define EBB_STATUS(name, value, text)                                                                        \
    case name:                                                                                               \
        return text;
#include <ebb/status.def>
#undef EBB_STATUS
    default: return "a status of the application's own";
    }
}
