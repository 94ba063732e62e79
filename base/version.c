/* The version of the library. A program's headers may be of another version. */
#include <ebb/base.h>

#define TEXT_(n) #n
#define TEXT(n)  TEXT_(n)

const char *ebb_version(void) {
    return TEXT(EBB_VERSION_MAJOR) "." TEXT(EBB_VERSION_MINOR) "." TEXT(EBB_VERSION_PATCH);
}
