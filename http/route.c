/* Routes: a trie with one node for each segment of a pattern. Below each node are its literal segments, sorted, then
 * the node for ":name" and the node for "*name".
 *
 * A lookup goes from the root down, and back up along the parents where a path does not match: no stack, no
 * allocation. A node stands for one sequence of segments, so a lookup visits each node at most once. Each visit costs
 * the logarithm of the number of literals times the length of the segment. Usually there is one visit for each
 * segment, and never more than there are nodes. */
#include "http/route.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "http/fields.h"

enum { CHUNK_BYTES = 4096 };

/* In the order in which they are tried. */
typedef enum kind { LITERAL = 0, ONE, REST } kind;

/* A handler for a method. Answers never move: an exchange refers to its handler while routes are added. */
typedef struct answer answer;
struct answer {
    answer *next;
    const char *method;
    ebb__handler handler;
};

/* Invariants: `literals` are sorted by `compare`, without duplicates. Only ONE and REST have a name. REST has no
 * children. A node is in the trie only if it has answers, or a node below it has. */
typedef struct node node;
struct node {
    node *parent; /* NULL: the root, which stands for no segment */
    kind kind;
    uint32_t params; /* names from the root down to here */
    node **literals;
    uint32_t literals_n, room;
    node *one, *rest;
    answer *answers;
    uint32_t text_n;
    char text[]; /* the segment, or the name; 0-terminated */
};

struct ebb__routes {
    ebb__arena arena;
    node *root;
};

/* ---- segments ------------------------------------------------------------------------------------------ */

typedef struct segment {
    const char *at;
    size_t n;
} segment;

/* The segment after the "/" at `slash`. */
static segment segment_at(const char *path, size_t n, size_t slash) {
    const char *at = path + slash + 1;
    size_t left = n - slash - 1;
    const char *end = memchr(at, '/', left);
    return (segment){at, end != NULL ? (size_t)(end - at) : left};
}

static kind kind_of(segment s) {
    if (s.n > 0 && s.at[0] == ':') return ONE;
    return s.n > 0 && s.at[0] == '*' ? REST : LITERAL;
}

/* Without the ":" or "*". */
static segment text_of(segment s) {
    return kind_of(s) == LITERAL ? s : (segment){s.at + 1, s.n - 1};
}

static bool same(segment a, segment b) {
    return a.n == b.n && memcmp(a.at, b.at, a.n) == 0;
}

/* ---- patterns ------------------------------------------------------------------------------------------ */

/* A pattern with a byte that no path has would never match. */
static bool is_path_text(const char *at, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (at[i] == '?' || at[i] == '#' || (unsigned char)at[i] <= ' ' || at[i] == 0x7f) return false;
    }
    return true;
}

/* The pattern has the same name before offset `end`. */
static bool is_named_before(const char *pattern, size_t n, size_t end, segment name) {
    for (size_t at = 0; at < end;) {
        segment s = segment_at(pattern, n, at);
        if (kind_of(s) != LITERAL && same(text_of(s), name)) return true;
        at += 1 + s.n;
    }
    return false;
}

static ebb_status check_name(const char *pattern, size_t n, size_t at, segment s) {
    if (text_of(s).n == 0 || is_named_before(pattern, n, at, text_of(s))) return EBB_ERR_INVALID;
    return kind_of(s) == REST && at + 1 + s.n < n ? EBB_ERR_INVALID : EBB_OK;
}

static ebb_status check_pattern(const char *pattern, size_t n) {
    size_t names = 0;
    if (pattern[0] != '/' || !is_path_text(pattern, n)) return EBB_ERR_INVALID;
    for (size_t at = 0; at < n;) {
        segment s = segment_at(pattern, n, at);
        if (kind_of(s) != LITERAL) {
            ebb_status st = check_name(pattern, n, at, s);
            if (st != EBB_OK) return st;
            if (++names > EBB__PARAMS) return EBB_ERR_LIMIT;
        }
        at += 1 + s.n;
    }
    return EBB_OK;
}

static ebb_status check(const char *method, const char *pattern, const ebb__handler *h) {
    if (method == NULL || pattern == NULL || !ebb__is_token(method, strlen(method))) return EBB_ERR_INVALID;
    if (h->kind == EBB__FUTURE ? h->as.future == NULL : h->as.fn == NULL) return EBB_ERR_INVALID;
    return check_pattern(pattern, strlen(pattern));
}

/* ---- the trie ------------------------------------------------------------------------------------------ */

static int compare(segment s, const node *n) {
    if (s.n != n->text_n) return s.n < n->text_n ? -1 : 1;
    if (s.n == 0) return 0;
    return memcmp(s.at, n->text, s.n);
}

/* The index of a literal, or where it would be inserted. */
static uint32_t literal_at(const node *n, segment s) {
    uint32_t from = 0, to = n->literals_n;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (compare(s, n->literals[middle]) > 0) from = middle + 1;
        else to = middle;
    }
    return from;
}

static node *literal_of(const node *n, segment s) {
    uint32_t at = literal_at(n, s);
    return at < n->literals_n && compare(s, n->literals[at]) == 0 ? n->literals[at] : NULL;
}

/* The child for a segment of a pattern; NULL: none. EBB_ERR_INVALID: its name differs. */
static ebb_status child_of(const node *n, segment s, node **out) {
    kind k = kind_of(s);
    *out = k == LITERAL ? literal_of(n, s) : k == ONE ? n->one : n->rest;
    return *out == NULL || compare(text_of(s), *out) == 0 ? EBB_OK : EBB_ERR_INVALID;
}

static node *node_new(ebb__arena *a, node *parent, segment s) {
    segment text = text_of(s);
    node *n = ebb__arena_zero(a, sizeof *n + text.n + 1);
    if (n == NULL) return NULL;
    n->parent = parent;
    n->kind = kind_of(s);
    n->params = parent != NULL ? parent->params + (n->kind != LITERAL) : 0;
    n->text_n = (uint32_t)text.n;
    if (text.n > 0) memcpy(n->text, text.at, text.n);
    return n;
}

static bool has_room(ebb__arena *a, node *n) {
    if (n->literals_n < n->room) return true;
    uint32_t room = n->room == 0 ? 1 : 2 * n->room;
    node **grown = ebb__arena_alloc(a, room * sizeof(void *));
    if (grown == NULL) return false;
    if (n->literals_n > 0) memcpy((void *)grown, (void *)n->literals, n->literals_n * sizeof(void *));
    n->literals = grown;
    n->room = room;
    return true;
}

/* Adds a child to its parent. False: no memory. */
static bool hang(ebb__arena *a, node *child) {
    node *n = child->parent;
    if (child->kind == ONE) n->one = child;
    if (child->kind == REST) n->rest = child;
    if (child->kind != LITERAL) return true;
    if (!has_room(a, n)) return false;
    uint32_t at = literal_at(n, (segment){child->text, child->text_n});
    void *from = (void *)(n->literals + at), *to = (void *)(n->literals + at + 1);
    memmove(to, from, (n->literals_n - at) * sizeof(void *));
    n->literals[at] = child;
    n->literals_n++;
    return true;
}

/* Descends as far as the trie has the pattern; *at is where that ends. */
static ebb_status descend(node **n, const char *pattern, size_t length, size_t *at) {
    node *child;
    for (*at = 0; *at < length;) {
        segment s = segment_at(pattern, length, *at);
        ebb_status st = child_of(*n, s, &child);
        if (st != EBB_OK) return st;
        if (child == NULL) return EBB_OK;
        *n = child;
        *at += 1 + s.n;
    }
    return EBB_OK;
}

/* Makes the missing nodes of a pattern below *n, which becomes its last node. `top` is set to the first new node,
 * which is not in the trie yet. False: no memory. */
static bool extend(ebb__arena *a, node **n, node **top, const char *pattern, size_t length, size_t at) {
    *top = NULL;
    while (at < length) {
        segment s = segment_at(pattern, length, at);
        node *child = node_new(a, *n, s);
        if (child == NULL || (*top != NULL && !hang(a, child))) return false;
        if (*top == NULL) *top = child;
        *n = child;
        at += 1 + s.n;
    }
    return true;
}

/* ---- answers ------------------------------------------------------------------------------------------- */

static answer *answer_of(const node *n, const char *method) {
    for (answer *a = n->answers; a != NULL; a = a->next) {
        if (strcmp(a->method, method) == 0) return a;
    }
    return NULL;
}

static answer *answer_for(const node *n, const char *method) {
    answer *a = answer_of(n, method);
    if (a == NULL && strcmp(method, "HEAD") == 0) a = answer_of(n, "GET");
    return a != NULL ? a : answer_of(n, "*");
}

static answer *answer_new(ebb__arena *arena, const char *method, ebb__handler handler) {
    size_t n = strlen(method) + 1;
    answer *a = ebb__arena_alloc(arena, sizeof *a);
    char *text = ebb__arena_alloc(arena, n);
    if (a == NULL || text == NULL) return NULL;
    memcpy(text, method, n);
    *a = (answer){NULL, text, handler};
    return a;
}

/* The last answer of a node is the last in `allow`. */
static void answer_add(node *n, answer *a) {
    answer **at = &n->answers;
    while (*at != NULL) at = &(*at)->next;
    *at = a;
}

/* ---- adding -------------------------------------------------------------------------------------------- */

ebb__routes *ebb__routes_new(ebb_allocator a) {
    ebb__routes *r = ebb__alloc(&a, sizeof *r);
    if (r == NULL) return NULL;
    ebb__arena_init(&r->arena, a, CHUNK_BYTES);
    r->root = node_new(&r->arena, NULL, (segment){"", 0});
    if (r->root != NULL) return r;
    ebb__routes_free(r);
    return NULL;
}

void ebb__routes_free(ebb__routes *r) {
    if (r == NULL) return;
    ebb_allocator a = r->arena.allocator;
    ebb__arena_free(&r->arena);
    ebb__free(&a, r, sizeof *r);
}

/* Steps that can fail come first: a pattern that was not added leaves no name behind. */
ebb_status ebb__routes_add(ebb__routes *r, const char *method, const char *pattern, ebb__handler handler) {
    node *n = r->root, *top;
    size_t at;
    ebb_status st = check(method, pattern, &handler);
    if (st == EBB_OK) st = descend(&n, pattern, strlen(pattern), &at);
    if (st != EBB_OK) return st;
    if (at == strlen(pattern) && answer_of(n, method) != NULL) return EBB_ERR_BUSY;
    answer *a = answer_new(&r->arena, method, handler);
    if (a == NULL || !extend(&r->arena, &n, &top, pattern, strlen(pattern), at)) return EBB_ERR_NOMEM;
    if (top != NULL && !hang(&r->arena, top)) return EBB_ERR_NOMEM;
    answer_add(n, a);
    return EBB_OK;
}

/* ---- finding ------------------------------------------------------------------------------------------- */

/* The state of a search. Invariant: `at` stands for path[start, end), a "/" and the segment after it; the root stands
 * for the empty start. */
typedef struct walk {
    const char *path;
    size_t n, start, end;
    const node *at;
} walk;

/* Descends to the first child, of this kind or a later one, that matches the next segment. "*" matches an empty
 * segment, ":" does not. */
static bool go_down(walk *w, kind from) {
    segment s = segment_at(w->path, w->n, w->end);
    const node *child = from == LITERAL ? literal_of(w->at, s) : NULL;
    if (child == NULL && from <= ONE && s.n > 0) child = w->at->one;
    if (child == NULL && from <= REST) child = w->at->rest;
    if (child == NULL) return false;
    w->start = w->end;
    w->end = child->kind == REST ? w->n : w->end + 1 + s.n;
    w->at = child;
    return true;
}

/* False: it was the root. */
static bool go_up(walk *w) {
    if (w->at->parent == NULL) return false;
    w->at = w->at->parent;
    w->end = w->start;
    if (w->at->parent == NULL) return true;
    do w->start--;
    while (w->path[w->start] != '/');
    return true;
}

/* Moves to the next node, in the order of precedence. False: there is none. */
static bool go_on(walk *w) {
    if (w->end < w->n && go_down(w, LITERAL)) return true;
    for (kind tried = w->at->kind; go_up(w); tried = w->at->kind) {
        if (go_down(w, tried + 1)) return true;
    }
    return false;
}

/* From the last to the first. */
static void take_params(walk w, ebb__match *out) {
    uint32_t i = out->params_n = w.at->params;
    do {
        if (w.at->kind != LITERAL) {
            const char *value = w.path + w.start + 1;
            out->params[--i] = (ebb__param){w.at->text, value, (uint32_t)(w.end - w.start - 1), NULL};
        }
    } while (go_up(&w));
}

static bool is_listed(const char *list, const char *method) {
    size_t n = strlen(method);
    for (const char *at = list; *at != 0; at += strspn(at, ", ")) {
        size_t word = strcspn(at, ",");
        if (word == n && memcmp(at, method, n) == 0) return true;
        at += word;
    }
    return false;
}

/* Appends the method if it fits. */
static void list_method(char *list, size_t room, const char *method) {
    size_t n = strlen(list), more = strlen(method);
    if (is_listed(list, method) || n + 2 + more + 1 > room) return;
    snprintf(list + n, room - n, "%s%s", n > 0 ? ", " : "", method);
}

static void list_answers(ebb__match *out, const node *n) {
    for (const answer *a = n->answers; a != NULL; a = a->next) {
        list_method(out->allow, sizeof out->allow, a->method);
        if (strcmp(a->method, "GET") == 0) list_method(out->allow, sizeof out->allow, "HEAD");
    }
}

/* True: the node has a handler for the method. */
static bool look_at(const walk *w, const char *method, ebb__match *out) {
    if (w->end < w->n || w->at->answers == NULL) return false;
    const answer *a = answer_for(w->at, method);
    out->path_known = true;
    if (a == NULL) {
        list_answers(out, w->at);
        return false;
    }
    out->handler = &a->handler;
    take_params(*w, out);
    return true;
}

void ebb__routes_find(const ebb__routes *r, const char *method, const char *path, size_t path_n,
                      ebb__match *out) {
    walk w = {.path = path, .n = path_n, .at = r->root};
    out->handler = NULL;
    out->path_known = false;
    out->allow[0] = 0;
    out->params_n = 0;
    if (path_n == 0 || path[0] != '/') return;
    while (go_on(&w) && !look_at(&w, method, out)) continue;
}

/* ---- decoding ------------------------------------------------------------------------------------------ */

static int hex_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The value of two hex digits; -1: they are none. */
static int byte_of(const char *at, size_t n) {
    if (n < 2 || hex_of(at[0]) < 0 || hex_of(at[1]) < 0) return -1;
    return 16 * hex_of(at[0]) + hex_of(at[1]);
}

size_t ebb__percent_decode(char *to, const char *from, size_t n) {
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        int byte = (unsigned char)from[i];
        if (byte == '%') {
            byte = byte_of(from + i + 1, n - i - 1);
            i += 2;
        }
        if (byte <= 0) return SIZE_MAX;
        to[out++] = (char)byte;
    }
    to[out] = 0;
    return out;
}
