/* durable/postgres_args.h - parameters and results of statements, in PostgreSQL's binary form.
 *
 * Parameters are added one after the other. After ebb__postgres_array the next n values are its elements. A failed allocation
 * sticks: `failed`. */
#ifndef EBB_DURABLE_POSTGRES_ARGS_H
#define EBB_DURABLE_POSTGRES_ARGS_H

#include <libpq-fe.h>

#include "durable/provider.h"

enum { EBB__POSTGRES_PARAMS = 64 };

/* Types of elements, as the server numbers them. */
enum { EBB__OID_BYTEA = 17, EBB__OID_INT8 = 20, EBB__OID_TEXT = 25, EBB__OID_UUID = 2950 };

typedef struct ebb__postgres_args {
    const ebb_allocator *allocator;
    uint8_t *at;
    size_t n, room;
    struct {
        size_t from;
        int n; /* -1: NULL */
    } param[EBB__POSTGRES_PARAMS];
    int params;
    size_t left; /* elements that the last array still gets */
    bool failed;
} ebb__postgres_args;

void ebb__postgres_args_clear(ebb__postgres_args *a); /* keeps the memory */
void ebb__postgres_args_free(ebb__postgres_args *a);

void ebb__postgres_null(ebb__postgres_args *a);
void ebb__postgres_bool(ebb__postgres_args *a, bool v);
void ebb__postgres_number(ebb__postgres_args *a,
                          uint64_t v); /* at most 2^63 - 1, which is what is sent for more */
void ebb__postgres_signed(ebb__postgres_args *a, uint64_t v);          /* its bits: below 0 as well */
void ebb__postgres_span(ebb__postgres_args *a, uint64_t ns);           /* the same, at most 31 years */
void ebb__postgres_text(ebb__postgres_args *a, const char *v);         /* NULL: SQL's NULL */
void ebb__postgres_bytes(ebb__postgres_args *a, ebb_blob v);           /* never SQL's NULL */
void ebb__postgres_blob(ebb__postgres_args *a, const ebb_blob *v);     /* NULL: SQL's NULL */
void ebb__postgres_token(ebb__postgres_args *a, ebb_provider_token v); /* 0: SQL's NULL */
void ebb__postgres_array(ebb__postgres_args *a, uint32_t type, size_t n);

/* Sends a statement with these parameters. False: the connection has failed. */
bool ebb__postgres_args_send(const ebb__postgres_args *a, PGconn *pg, const char *sql);

/* A value of a result; NULL is 0, false or none. */
uint64_t ebb__postgres_get_number(const PGresult *r, int row, int column);
bool ebb__postgres_get_bool(const PGresult *r, int row, int column);
ebb_provider_token ebb__postgres_get_token(const PGresult *r, int row, int column);
/* Copies for the answer of a call; `whole` is set to false if there was no memory. Text NULL is "". */
const char *ebb__postgres_get_text(ebb_provider_call *c, const PGresult *r, int row, int column, bool *whole);
ebb_blob ebb__postgres_get_blob(ebb_provider_call *c, const PGresult *r, int row, int column, bool *whole);

#endif
