/* The tables of the PostgreSQL provider. Each statement does nothing if it was done before, so that two workers may make a
 * schema at the same time; they do it one after the other, under an advisory lock.
 *
 * What the columns mean where their names do not say it:
 *   inst.ready    since when the instance has something to do: the time of its first message or timer. NULL: nothing.
 *                 Whoever changes an inbox or a timer holds the lock of the instance's row and keeps `ready` true
 *   inst.token    of the claim by `node`; `kept`: by an ack with `keep`, and no turn is running
 *   inbox.seq     rises in the order of commits, since it is taken under the lock of the instance's row. Below 1: put first
 *   work.ord      the order in which work was made
 *   clock.added   what is added to the machine's clock, so that the store's never goes back
 *   clock_high    the highest time that was given, to 10 ms
 * A row that is claimed is in none of the indices that claims read, so that claims do not pass it. */
#include "durable/postgres_sql.h"

const char *const ebb__postgres_sql_tables[] = {
    "CREATE SCHEMA IF NOT EXISTS ebb",
    "CREATE TABLE IF NOT EXISTS ebb.meta(k text PRIMARY KEY, v bigint NOT NULL)",
    "CREATE TABLE IF NOT EXISTS ebb.clock(added bigint NOT NULL)",
    "INSERT INTO ebb.clock SELECT 0 WHERE NOT EXISTS (SELECT FROM ebb.clock)",
    "CREATE SEQUENCE IF NOT EXISTS ebb.clock_high",
    "CREATE SEQUENCE IF NOT EXISTS ebb.number",
    "CREATE TABLE IF NOT EXISTS ebb.node(\n"
    "  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, epoch bigint NOT NULL, until bigint NOT NULL,\n"
    "  name text NOT NULL, runs text[] COLLATE \"C\" NOT NULL, versions bigint[] NOT NULL)",
    "CREATE TABLE IF NOT EXISTS ebb.inst(\n"
    "  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,\n"
    "  id text COLLATE \"C\" NOT NULL UNIQUE,\n"
    "  name text COLLATE \"C\" NOT NULL, version bigint NOT NULL, semantics bigint NOT NULL DEFAULT 0,\n"
    "  execution bigint NOT NULL DEFAULT 1, turn bigint NOT NULL DEFAULT 0,\n"
    "  state text COLLATE \"C\" NOT NULL DEFAULT 'Running', parent text COLLATE \"C\" NOT NULL DEFAULT '',\n"
    "  started bigint NOT NULL, ended bigint NOT NULL DEFAULT 0,\n"
    "  attempts bigint NOT NULL DEFAULT 0, unread bigint NOT NULL DEFAULT 0,\n"
    "  ready bigint, token uuid, node bigint, kept boolean NOT NULL DEFAULT false,\n"
    "  why bytea NOT NULL DEFAULT '', input bytea NOT NULL, result bytea, custom bytea)\n"
    "  WITH (fillfactor = 70)",
    "CREATE INDEX IF NOT EXISTS inst_ready ON ebb.inst(name, version, ready)\n"
    "  WHERE ready IS NOT NULL AND token IS NULL AND state = 'Running' AND attempts < 2",
    "CREATE INDEX IF NOT EXISTS inst_suspect ON ebb.inst(name, version, ready)\n"
    "  WHERE ready IS NOT NULL AND token IS NULL AND state = 'Running' AND attempts >= 2",
    "CREATE INDEX IF NOT EXISTS inst_node ON ebb.inst(node, token) WHERE node IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS inst_kept ON ebb.inst(node, ready) WHERE kept AND ready IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS inst_parent ON ebb.inst(parent, id) WHERE parent <> ''",
    "CREATE TABLE IF NOT EXISTS ebb.hist(\n"
    "  inst bigint, execution bigint, turn bigint, at bigint NOT NULL, ack uuid NOT NULL, body bytea NOT "
    "NULL,\n"
    "  PRIMARY KEY(inst, execution, turn))",
    "CREATE TABLE IF NOT EXISTS ebb.inbox(\n"
    "  inst bigint, seq bigint, execution bigint NOT NULL, kind bigint NOT NULL, step bigint NOT NULL,\n"
    "  at bigint NOT NULL, ack uuid, body bytea, PRIMARY KEY(inst, seq))",
    "CREATE TABLE IF NOT EXISTS ebb.work(\n"
    "  inst bigint, execution bigint, act bigint, queue text COLLATE \"C\" NOT NULL, session text COLLATE "
    "\"C\" NOT NULL,\n"
    "  name text NOT NULL, attempt bigint NOT NULL, attempts bigint NOT NULL DEFAULT 0, ord bigint NOT "
    "NULL,\n"
    "  visible bigint NOT NULL, token uuid, node bigint, until bigint NOT NULL DEFAULT 0, input bytea NOT "
    "NULL,\n"
    "  PRIMARY KEY(inst, execution, act)) WITH (fillfactor = 70)",
    "CREATE INDEX IF NOT EXISTS work_idle ON ebb.work(queue, ord) WHERE token IS NULL AND attempts < 2",
    "CREATE INDEX IF NOT EXISTS work_suspect ON ebb.work(queue, ord) WHERE attempts >= 2",
    "CREATE INDEX IF NOT EXISTS work_claimed ON ebb.work(queue, until) WHERE token IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS work_node ON ebb.work(node, token) WHERE node IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS ebb.timer(\n"
    "  inst bigint, execution bigint, step bigint, due bigint NOT NULL, PRIMARY KEY(inst, execution, step))",
    "CREATE TABLE IF NOT EXISTS ebb.value(inst bigint, k bytea, v bytea NOT NULL, PRIMARY KEY(inst, k))",
    "CREATE TABLE IF NOT EXISTS ebb.dedup(inst bigint, id bytea, PRIMARY KEY(inst, id))",
    "CREATE TABLE IF NOT EXISTS ebb.session(name text COLLATE \"C\" PRIMARY KEY, node bigint NOT NULL)",
    "CREATE INDEX IF NOT EXISTS session_node ON ebb.session(node)",
    NULL,
};

static const char *const *const first[] = {ebb__postgres_sql_tables,  ebb__postgres_sql_turns,
                                           ebb__postgres_sql_acks,    ebb__postgres_sql_work,
                                           ebb__postgres_sql_clients, NULL};
static const ebb__postgres_version versions[] = {{first, 1}};
const ebb__postgres_schema ebb__postgres_schema_own = {versions, 1, "ebb_v1"};
