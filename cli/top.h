/* `ebb top`.
 *
 * top.c          the command: the socket, the terminal, the keys
 *   top_view.c     a snapshot as lines of text */
#ifndef EBB__CLI_TOP_H
#define EBB__CLI_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum ebb__top_sort { EBB__TOP_TREE, EBB__TOP_AGE, EBB__TOP_POLLS, EBB__TOP_SORTS } ebb__top_sort;

typedef struct ebb__top_view {
    ebb__top_sort sort; /* TREE: regions with their tasks; else tasks alone, the largest first */
    bool folded;        /* regions alone */
} ebb__top_view;

/* Writes a snapshot as lines of text. */
void ebb__top_write(FILE *out, const json_t *snapshot, const ebb__top_view *view);

#endif
