/* durable/provider.h - what providers share: URLs, random tokens, errors with a text, lists in answers.
 *
 * Providers include ebb/provider.h and this. They know neither the engine nor the store above them. */
#ifndef EBB_DURABLE_PROVIDER_H
#define EBB_DURABLE_PROVIDER_H

#include <ebb/provider.h>

#include "base/arena.h"

extern const ebb_provider ebb__provider_lab;      /* "lab:", in memory */
extern const ebb_provider ebb__provider_sqlite;   /* "sqlite:PATH" */
extern const ebb_provider ebb__provider_postgres; /* "postgres://...", "postgresql://..." */

/* The provider of a URL's scheme. NULL: there is none. */
const ebb_provider *ebb__provider_of(const char *url);

/* A URL in parts; each is decoded (%xx) and 0-terminated in the arena, "" if it is missing. */
typedef struct ebb__store_url {
    const char *scheme, *user, *password, *host, *path;
    uint16_t port; /* 0: none */
    struct {
        const char *name, *value;
    } option[16];
    size_t options;
} ebb__store_url;
/* Parses "scheme:path" and "scheme://user:password@host:port/path?a=b&c=d". EBB_ERR_INVALID: `text` names the part;
 * the password is in no text. EBB_ERR_NOMEM. */
ebb_status ebb__store_url_parse(ebb__arena *arena, const char *url, ebb__store_url *out, char *text,
                                size_t room);
/* The URL with "***" for its password, for texts. */
void ebb__store_url_say(const char *url, char *out, size_t room);
/* The value of an option; NULL: none. */
const char *ebb__store_url_option(const ebb__store_url *u, const char *name);

/* Ends a call with a formatted text. Any thread. */
void ebb__provider_fail(ebb_provider_call *c, ebb_status st, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* 128 random bits that are not 0. */
ebb_provider_token ebb__token_new(const ebb_provider_host *host);
static inline bool ebb__token_is(ebb_provider_token a, ebb_provider_token b) {
    return a.hi == b.hi && a.lo == b.lo;
}
static inline bool ebb__token_is_none(ebb_provider_token t) {
    return t.hi == 0 && t.lo == 0;
}

/* States by name, as they stand in stores. EBB_ERR_CORRUPT: no state has this name. */
ebb_status ebb__instance_state_of(const char *name, ebb_instance_state *out);

/* Calls in the order in which they came. Not for threads: a provider with a thread guards it. */
typedef struct ebb__call_queue {
    ebb_provider_call *first, *last;
    uint32_t calls;
    uint64_t bytes;
} ebb__call_queue;
void ebb__call_queue_push(ebb__call_queue *q, ebb_provider_call *c);
ebb_provider_call *ebb__call_queue_pop(ebb__call_queue *q); /* NULL: empty */
/* Whether somebody still waits for the answer of a call; on any thread, as long as the call is the provider's. */
bool ebb__call_is_wanted(const ebb_provider_call *c);
/* Moves the head of `from` to the empty `to`: as many calls as `most` and `bytes` allow, at least one. */
void ebb__call_queue_take(ebb__call_queue *from, ebb__call_queue *to, uint32_t most, uint64_t bytes);

#endif
