#include "kernel/strings.h"

#include <string.h>

void ebb__strings_init(ebb__strings *s) {
    memset(s->place, 0, sizeof s->place);
    s->cached = s->n = 0;
}

static uint32_t hash_of(const char *text) {
    uint32_t h = 2166136261u;
    for (; *text != 0; text++) h = (h ^ (uint8_t)*text) * 16777619u;
    return h;
}

static uint32_t number_of_text(ebb__strings *s, const char *text, bool *fresh) {
    uint32_t h = hash_of(text);
    for (uint32_t i = 1; i <= s->n; i++) {
        if (s->hash[i] == h && strcmp(s->text[i], text) == 0) return i;
    }
    if (s->n == EBB__STRINGS_MOST) return 0;
    s->text[++s->n] = text;
    s->hash[s->n] = h;
    *fresh = true;
    return s->n;
}

uint32_t ebb__string_slow(ebb__strings *s, const char *text, bool *fresh) {
    if (text == NULL) return 0;
    uint32_t i = ebb__string_place(text);
    while (s->place[i].text != NULL && s->place[i].text != text) i = (i + 1) % EBB__STRING_PLACES;
    if (s->place[i].text == text) return s->place[i].number;
    uint32_t number = number_of_text(s, text, fresh);
    if (s->cached < EBB__STRING_CACHED) {
        s->place[i].text = text;
        s->place[i].number = number;
        s->cached++;
    }
    return number;
}
