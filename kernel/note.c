/* Events that layers above the kernel record. The journal has each as it is, with its texts in one: a replay has no
 * layers, and records them from there. */
#include "base/text.h"
#include "kernel/record.h"

/* The texts in one, for the journal: what, site and text, each ended by EBB__NOTE_END. */
static void journal_texts(ebb_runtime *rt, const ebb__note *n) {
    char all[EBB__NOTE_BYTES];
    const char *texts[] = {n->what, n->site, n->text};
    if (n->what == NULL && n->site == NULL && n->text == NULL) return;
    ebb__text t = ebb__text_in(all, sizeof all);
    for (size_t i = 0; i < 3; i++) {
        ebb__text_str(&t, texts[i] == NULL ? "" : texts[i]);
        ebb__text_str(&t, EBB__NOTE_END);
    }
    ebb__journal_text_slow(rt, all);
}

/* A text of a peer may be long, and may have the byte that ends a text in the journal. */
static const char *cut(char out[EBB__NOTE_TEXT + 1], const char *text) {
    size_t n = 0;
    if (text == NULL) return NULL;
    for (; n < EBB__NOTE_TEXT && text[n] != 0; n++) out[n] = text[n] == EBB__NOTE_END[0] ? '?' : text[n];
    out[n] = 0;
    return out;
}

void ebb__note_slow(ebb_runtime *rt, const ebb__note *given) {
    char text[EBB__NOTE_TEXT + 1];
    ebb__note whole = *given;
    const ebb__note *n = &whole;
    whole.text = cut(text, given->text);
    ebb__journal(rt, &rt->host.cx,
                 (ebb_record){.type = J_NOTE,
                              .kind = n->type,
                              .task = n->task,
                              .region = n->region,
                              .value = n->value,
                              .other = n->other});
    if (rt->journal != NULL) journal_texts(rt, n);
    if (rt->trace == NULL) return;
    uint32_t value = n->value;
    if (ebb__strings_in(n->type) == EBB__STRINGS_BOTH) {
        uint32_t what = ebb__string_number(rt, n->what), site = ebb__string_number(rt, n->site);
        value |= site << EBB__SITE_ABOVE | what << EBB__WHAT_ABOVE;
    }
    ebb__emit_plain_slow(rt, n->type, n->task, n->region, value, n->other);
    ebb__emit_text_slow(rt, n->text);
}
