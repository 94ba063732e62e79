/* Parameters and results of statements, in PostgreSQL's binary form. */
#include "durable/postgres_args.h"

#include <string.h>

#include "base/alloc.h"

#define SPAN_MOST UINT64_C(1000000000000000000)

enum { FIRST_ROOM = 4096 };

void ebb__postgres_args_clear(ebb__postgres_args *a) {
    a->n = 0;
    a->params = 0;
    a->left = 0;
    a->failed = false;
}

void ebb__postgres_args_free(ebb__postgres_args *a) {
    ebb__free(a->allocator, a->at, a->room);
    a->at = NULL;
    a->room = 0;
}

static uint8_t *room(ebb__postgres_args *a, size_t n) {
    size_t want = a->room != 0 ? a->room : FIRST_ROOM;
    if (a->failed) return NULL;
    while (want - a->n < n) want *= 2;
    if (want != a->room) {
        uint8_t *at = ebb__resize(a->allocator, a->at, a->room, want);
        a->failed = at == NULL;
        if (a->failed) return NULL;
        a->at = at;
        a->room = want;
    }
    uint8_t *to = a->at + a->n;
    a->n += n;
    return to;
}

static void big_endian(uint8_t *to, uint64_t v, int bytes) {
    for (int i = bytes - 1; i >= 0; i--, v >>= 8) to[i] = (uint8_t)v;
}

static void begin_param(ebb__postgres_args *a) {
    if (a->params == EBB__POSTGRES_PARAMS) a->failed = true;
    if (a->failed) return;
    a->param[a->params].from = a->n;
    a->param[a->params++].n = 0;
}

/* A parameter, or an element of the array. n -1: NULL. */
static void put(ebb__postgres_args *a, const void *v, int n) {
    const size_t bytes = n > 0 ? (size_t)n : 0;
    const bool element = a->left > 0;
    if (!element) begin_param(a);
    uint8_t *to = room(a, bytes + (element ? 4 : 0));
    if (to == NULL) return;
    if (element) {
        big_endian(to, (uint32_t)n, 4);
        to += 4;
        a->param[a->params - 1].n += (int)bytes + 4;
        a->left--;
    } else a->param[a->params - 1].n = n;
    if (bytes != 0) memcpy(to, v, bytes);
}

void ebb__postgres_array(ebb__postgres_args *a, uint32_t type, size_t n) {
    const size_t head = n != 0 ? 20 : 12;
    begin_param(a);
    uint8_t *to = room(a, head);
    if (to == NULL) return;
    big_endian(to, n != 0, 4); /* dimensions */
    big_endian(to + 4, 1, 4);  /* there may be NULLs */
    big_endian(to + 8, type, 4);
    if (n != 0) {
        big_endian(to + 12, n, 4);
        big_endian(to + 16, 1, 4); /* the first index */
    }
    a->param[a->params - 1].n = (int)head;
    a->left = n;
}

void ebb__postgres_null(ebb__postgres_args *a) {
    put(a, NULL, -1);
}

void ebb__postgres_bool(ebb__postgres_args *a, bool v) {
    const uint8_t byte = v;
    put(a, &byte, 1);
}

void ebb__postgres_signed(ebb__postgres_args *a, uint64_t v) {
    uint8_t bytes[8];
    big_endian(bytes, v, 8);
    put(a, bytes, 8);
}

void ebb__postgres_number(ebb__postgres_args *a, uint64_t v) {
    ebb__postgres_signed(a, v < INT64_MAX ? v : INT64_MAX);
}

void ebb__postgres_span(ebb__postgres_args *a, uint64_t ns) {
    ebb__postgres_number(a, ns < SPAN_MOST ? ns : SPAN_MOST);
}

void ebb__postgres_text(ebb__postgres_args *a, const char *v) {
    if (v == NULL) ebb__postgres_null(a);
    else put(a, v, (int)strlen(v));
}

void ebb__postgres_bytes(ebb__postgres_args *a, ebb_blob v) {
    put(a, v.at, (int)v.n);
}

void ebb__postgres_blob(ebb__postgres_args *a, const ebb_blob *v) {
    if (v == NULL) ebb__postgres_null(a);
    else ebb__postgres_bytes(a, *v);
}

void ebb__postgres_token(ebb__postgres_args *a, ebb_provider_token v) {
    uint8_t bytes[16];
    big_endian(bytes, v.hi, 8);
    big_endian(bytes + 8, v.lo, 8);
    if (ebb__token_is_none(v)) ebb__postgres_null(a);
    else put(a, bytes, 16);
}

bool ebb__postgres_args_send(const ebb__postgres_args *a, PGconn *pg, const char *sql) {
    const char *values[EBB__POSTGRES_PARAMS];
    int lengths[EBB__POSTGRES_PARAMS], formats[EBB__POSTGRES_PARAMS];
    for (int i = 0; i < a->params; i++) {
        values[i] = a->param[i].n >= 0 ? (const char *)a->at + a->param[i].from : NULL;
        if (a->param[i].n == 0) values[i] = "";
        lengths[i] = a->param[i].n;
        formats[i] = 1;
    }
    return PQsendQueryParams(pg, sql, a->params, NULL, values, lengths, formats, 1) == 1;
}

/* ---- results ------------------------------------------------------------------------------------------------- */

static uint64_t number_of(const uint8_t *at, int n) {
    uint64_t v = 0;
    for (int i = 0; i < n; i++) v = v << 8 | at[i];
    return v;
}

static const uint8_t *value(const PGresult *r, int row, int column, int *n) {
    *n = PQgetisnull(r, row, column) ? 0 : PQgetlength(r, row, column);
    return (const uint8_t *)PQgetvalue(r, row, column);
}

uint64_t ebb__postgres_get_number(const PGresult *r, int row, int column) {
    int n;
    const uint8_t *at = value(r, row, column, &n);
    return n <= 8 ? number_of(at, n) : 0;
}

bool ebb__postgres_get_bool(const PGresult *r, int row, int column) {
    int n;
    const uint8_t *at = value(r, row, column, &n);
    return n == 1 && at[0] != 0;
}

ebb_provider_token ebb__postgres_get_token(const PGresult *r, int row, int column) {
    int n;
    const uint8_t *at = value(r, row, column, &n);
    if (n != 16) return (ebb_provider_token){0, 0};
    return (ebb_provider_token){number_of(at, 8), number_of(at + 8, 8)};
}

const char *ebb__postgres_get_text(ebb_provider_call *c, const PGresult *r, int row, int column,
                                   bool *whole) {
    int n;
    const uint8_t *at = value(r, row, column, &n);
    const char *to = n != 0 ? ebb_provider_copy(c, at, (size_t)n) : "";
    *whole = *whole && to != NULL;
    return to;
}

ebb_blob ebb__postgres_get_blob(ebb_provider_call *c, const PGresult *r, int row, int column, bool *whole) {
    int n;
    const uint8_t *at = value(r, row, column, &n);
    if (PQgetisnull(r, row, column)) return (ebb_blob){NULL, 0};
    ebb_blob to = {ebb_provider_copy(c, at, (size_t)n), (size_t)n};
    *whole = *whole && to.at != NULL;
    return to;
}
