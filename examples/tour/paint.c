#include "tour.h"

#include <stdlib.h>
#include <unistd.h>

static bool coloured;

/* https://no-color.org: set and not empty means no. */
void paint_start(void) {
    const char *no = getenv("NO_COLOR");
    coloured = isatty(STDOUT_FILENO) && (no == NULL || no[0] == 0);
}

const char *paint_on(paint p) {
    static const char *const codes[] = {
        [PLAIN] = "",         [DIM] = "\x1b[2m",     [BOLD] = "\x1b[1m",  [RED] = "\x1b[31m",
        [GREEN] = "\x1b[32m", [YELLOW] = "\x1b[33m", [BLUE] = "\x1b[34m",
    };
    return coloured ? codes[p] : "";
}

const char *paint_off(void) {
    return coloured ? "\x1b[0m" : "";
}
