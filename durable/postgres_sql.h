/* durable/postgres_sql.h - the versions of the schema of the PostgreSQL provider, and the statements that make them.
 *
 * A version's statements take the schema from the version before to it. They may be repeated, and they only add: a table, a
 * column with a default, functions in a namespace of their own. So workers of both versions run side by side. A later version
 * may take away what only older ones use; it says so by `min_reader`. */
#ifndef EBB_DURABLE_POSTGRES_SQL_H
#define EBB_DURABLE_POSTGRES_SQL_H

#include <stddef.h>
#include <stdint.h>

typedef struct ebb__postgres_version {
    const char *const *const *parts; /* lists of statements; both end with NULL */
    uint32_t min_reader;             /* the least version that may still use the schema */
} ebb__postgres_version;

/* What a library knows: versions 1 to n, and the namespace of the functions that it calls. */
typedef struct ebb__postgres_schema {
    const ebb__postgres_version *version;
    uint32_t n;
    const char *functions;
} ebb__postgres_schema;

extern const ebb__postgres_schema ebb__postgres_schema_own;

extern const char *const ebb__postgres_sql_tables[];
extern const char *const ebb__postgres_sql_turns[];
extern const char *const ebb__postgres_sql_acks[];
extern const char *const ebb__postgres_sql_work[];
extern const char *const ebb__postgres_sql_clients[];

#endif
