/* durable/postgres_sql.h - the statements that make the schema of the PostgreSQL provider; NULL after the last. */
#ifndef EBB_DURABLE_POSTGRES_SQL_H
#define EBB_DURABLE_POSTGRES_SQL_H

#include <stddef.h>

enum { EBB__POSTGRES_SCHEMA = 1 }; /* the version of the functions, "ebb_v1", and of the tables */

extern const char *const ebb__postgres_sql_tables[];
extern const char *const ebb__postgres_sql_turns[];
extern const char *const ebb__postgres_sql_work[];
extern const char *const ebb__postgres_sql_clients[];

#endif
