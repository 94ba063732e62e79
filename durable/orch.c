/* What orchestrations know and keep: identity, time, random numbers, patches, memory, state, their ends. */
#include "durable/run.h"

#include <stdio.h>
#include <string.h>

/* ---- known ------------------------------------------------------------------------------------------------------- */

const char *ebb_orch_id(const ebb_orch *r) {
    return r->opts.id;
}
const char *ebb_orch_parent(const ebb_orch *r) {
    return r->parent;
}
uint64_t ebb_orch_execution(const ebb_orch *r) {
    return r->opts.execution;
}
uint32_t ebb_orch_version(const ebb_orch *r) {
    return r->version;
}
uint64_t ebb_orch_now(const ebb_orch *r) {
    return r->now;
}
bool ebb_orch_cancelled(const ebb_orch *r) {
    return r->cancelled;
}
const char *ebb_orch_cancel_reason(const ebb_orch *r) {
    return r->cancel_reason;
}
uint64_t ebb_orch_cleanup_by(const ebb_orch *r) {
    return r->cleanup_by;
}
bool ebb_orch_is_replaying(const ebb_orch *r) {
    return r->replaying;
}

uint64_t ebb_orch_random(ebb_orch *r) {
    r->random[0] += UINT64_C(0x9e3779b97f4a7c15);
    return ebb__mixed(r->random[0] ^ ebb__mixed(r->random[1]));
}

void ebb_orch_new_id(ebb_orch *r, char out[37]) {
    ebb__uuid_say(ebb_orch_random(r), ebb_orch_random(r), out);
}

void ebb__uuid_say(uint64_t high, uint64_t low, char out[37]) {
    high = (high & ~UINT64_C(0xF000)) | 0x4000;          /* version 4: random */
    low = (low & (UINT64_MAX >> 2)) | UINT64_C(1) << 63; /* variant 1 */
    (void)snprintf(out, 37, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(high >> 32),
                   (unsigned)(high >> 16 & 0xFFFF), (unsigned)(high & 0xFFFF), (unsigned)(low >> 48),
                   (unsigned long long)(low & UINT64_C(0xFFFFFFFFFFFF)));
}

/* The answer is recorded once. A recorded turn that passed here without the marker was made by code that did not have
 * it: the answer is no, and stays so for the execution. */
bool ebb_orch_patched_site(ebb_orch *r, const char *name, const char *site) {
    const ebb__event_text text = ebb__text_of(name);
    const ebb__patch *known = r->patches.at;
    for (size_t i = 0; i < r->patches.n; i++) {
        if (ebb__same_text(known[i].name, text)) return known[i].answer;
    }
    bool answer = true;
    if (!r->replaying || ebb__run_next_is_patch(r, text, &answer)) {
        const ebb__event e = {
            .kind = EBB__EVENT_PATCHED, .name = text, .flags = answer ? EBB__FLAG_PATCHED : 0};
        (void)ebb__run_emit(r, &e, site);
    } else {
        answer = false;
    }
    ebb__patch *p = ebb__run_add(r, &r->memory, &r->patches, sizeof *p);
    *p = (ebb__patch){{ebb__run_text(r, text.at, text.n), text.n}, answer};
    return answer;
}

void ebb_orch_log(ebb_orch *r, ebb_durable_level level, const char *text) {
    if (!r->replaying && r->opts.log != NULL) r->opts.log(r->opts.arg, level, r->opts.id, text);
}

void *ebb_orch_alloc(ebb_orch *r, size_t n) {
    if (n > EBB__CODE_MOST - r->code_bytes) return NULL;
    void *at = ebb__arena_zero(&r->code, n != 0 ? n : 1);
    if (at != NULL) r->code_bytes += n;
    return at;
}

/* ---- state ------------------------------------------------------------------------------------------------------------ */

ebb_status ebb_orch_set_status(ebb_orch *r, ebb_blob status) {
    if (status.n > EBB_DURABLE_PAYLOAD)
        return ebb__durable_say(EBB_ERR_LIMIT, "custom status: %zu bytes (%d)", status.n,
                                EBB_DURABLE_PAYLOAD);
    ebb_blob *kept = ebb__run_new(r, sizeof *kept);
    *kept = ebb__run_copy(r, status);
    const ebb__event e = {.kind = EBB__EVENT_CUSTOM_SET, .body = *kept};
    (void)ebb__run_emit(r, &e, NULL);
    r->custom = r->status = kept;
    return EBB_OK;
}

static ebb__value *value_of(const ebb_orch *r, const char *key) {
    ebb__value *all = r->values.at;
    for (size_t i = 0; i < r->values.n; i++) {
        if (strcmp(all[i].key, key) == 0) return &all[i];
    }
    return NULL;
}

static size_t size_of(const ebb__value *v) {
    return v != NULL && v->value.at != NULL ? strlen(v->key) + v->value.n : 0;
}

ebb_status ebb_orch_set_site(ebb_orch *r, const char *key, ebb_blob value, const char *site) {
    if (!ebb__name_is_valid(key)) return ebb__durable_say(EBB_ERR_INVALID, "the key of a value is not valid");
    ebb__value *v = value_of(r, key);
    const uint64_t bytes = r->values_bytes - size_of(v) + (value.at != NULL ? strlen(key) + value.n : 0);
    if (bytes > EBB__VALUES_BYTES)
        return ebb__durable_say(EBB_ERR_LIMIT, "value %s: %llu bytes in all (%d)", key,
                                (unsigned long long)bytes, EBB__VALUES_BYTES);
    if (v == NULL && r->values.n >= EBB_DURABLE_VALUES)
        return ebb__durable_say(EBB_ERR_LIMIT, "value %s: %zu keys (%d)", key, r->values.n,
                                EBB_DURABLE_VALUES);
    const ebb_blob kept = value.at != NULL ? ebb__run_copy(r, value) : value;
    const ebb__event e = {.kind = EBB__EVENT_VALUE_SET,
                          .key = ebb__text_of(key),
                          .body = kept,
                          .flags = value.at == NULL ? EBB__FLAG_REMOVED : 0};
    (void)ebb__run_emit(r, &e, site);
    if (v == NULL) {
        v = ebb__run_add(r, &r->memory, &r->values, sizeof *v);
        v->key = ebb__run_text(r, key, strlen(key));
    }
    v->value = kept;
    v->set = true;
    r->values_bytes = bytes;
    return EBB_OK;
}

bool ebb_orch_get(const ebb_orch *r, const char *key, ebb_blob *out) {
    const ebb__value *v = value_of(r, key);
    *out = v != NULL ? v->value : (ebb_blob){NULL, 0};
    return out->at != NULL;
}

/* ---- ends --------------------------------------------------------------------------------------------------------------- */

ebb_status ebb_orch_fail(ebb_orch *r, const ebb_failure *why) {
    if (why->details.n > EBB_DURABLE_PAYLOAD)
        return ebb__durable_say(EBB_ERR_LIMIT, "details of a failure: %zu bytes (%d)", why->details.n,
                                EBB_DURABLE_PAYLOAD);
    r->own = *why;
    r->own_set = true;
    if (why->code != NULL) r->own.code = ebb__run_text(r, why->code, strlen(why->code));
    if (why->message != NULL) r->own.message = ebb__run_text(r, why->message, strlen(why->message));
    r->own.details = ebb__run_copy(r, why->details);
    return EBB_FAILED;
}

ebb_status ebb_orch_continue_as_new_site(ebb_orch *r, ebb_blob in, uint32_t version, const char *site) {
    size_t signals = 0;
    (void)site;
    if (r->cancelled) return EBB_CANCELLED;
    for (const ebb__signal *g = r->signals; g != NULL; g = g->next) signals += g->event.body.n;
    if (in.n > EBB_DURABLE_PAYLOAD)
        return ebb__durable_say(EBB_ERR_LIMIT, "continue-as-new: input of %zu bytes (%d)", in.n,
                                EBB_DURABLE_PAYLOAD);
    if (signals > EBB__CARRIED_BYTES)
        return ebb__durable_say(EBB_ERR_LIMIT, "continue-as-new: signals of %zu bytes (%d)", signals,
                                EBB__CARRIED_BYTES);
    r->continued = true;
    r->next_input = ebb__run_copy(r, in);
    r->next_version = version != 0 ? version : r->version;
    return EBB_OK;
}
