/* The library's own version, for a program whose headers may be of another one. */
#include <ebb/base.h>

#define TEXT_(n) #n
#define TEXT(n)  TEXT_(n)

const char *ebb_version(void) {
    return TEXT(EBB_VERSION_MAJOR) "." TEXT(EBB_VERSION_MINOR) "." TEXT(EBB_VERSION_PATCH);
}
