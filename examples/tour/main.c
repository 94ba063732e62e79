/* usage: tour [DIRECTORY]    with a directory, the traces are kept there for `ebb trace show` */
#include "tour.h"

#include <stdio.h>

static const chapter *const chapters[] = {&nested, &masked, &race, &verbs, &leak};

int main(int argc, char **argv) {
    const char *directory = argc > 1 ? argv[1] : NULL;
    size_t n = sizeof chapters / sizeof chapters[0], wrong = 0;
    paint_start();
    printf("Ebb: stopping is as well defined as starting.\n\n"
           "  a task    Running > CancelRequested > Cancelling > Finalizing > Completed\n"
           "  a region  Open > Closing > Draining > Finalizing > Closed\n\n"
           "Time is virtual, and the tables are read from the runtime's own trace.\n\n");
    for (size_t i = 0; i < n; i++) {
        printf("%zu. ", i + 1);
        if (!stage_play(chapters[i], directory)) wrong++;
    }
    if (wrong == 0) printf("All %zu chapters ended as they should.\n", n);
    else printf("%zu of %zu chapters did not end as they should.\n", wrong, n);
    return wrong == 0 ? 0 : 1;
}
