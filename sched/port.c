/* Receives messages from other runtimes. Each message is one operation of the receiver. The journal has that
 * operation, after a RECEIVE record that marks it as a message. */
#include "kernel/record.h"
#include <ebb/sched.h>

static void cancel_within(ebb_cx *host, ebb_region region, const ebb_msg *m, const char *message) {
    uint64_t now = ebb_now(host);
    ebb_budget b = {m->left < EBB_FOREVER - now ? now + m->left : EBB_FOREVER, m->polls, 0};
    ebb_region_cancel_within(host, region, m->kind, message, b);
}

ebb_status ebb_msg_deliver(ebb_runtime *rt, const ebb_msg *m) {
    ebb_cx *host = ebb_runtime_host(rt);
    if (m->target >> 56 != rt->id) return EBB_ERR_FOREIGN;
    if (ebb_id_status(m->target) != EBB_OK) return EBB_ERR_INVALID;
    if (m->verb < EBB_MSG_WAKE || m->verb > EBB_MSG_WORD) return EBB_ERR_INVALID;
    if ((m->verb == EBB_MSG_WAKE && m->to_region) || (m->verb == EBB_MSG_CLOSE && !m->to_region)) {
        return EBB_ERR_INVALID;
    }
    char message[EBB_MESSAGE_MAX + 1];
    memcpy(message, m->message, EBB_MESSAGE_MAX);
    message[EBB_MESSAGE_MAX] = 0; /* the bytes of another runtime may lack the final 0 */
    ebb_task task = {m->target};
    ebb_region region = {m->target};
    uint64_t to_task = m->to_region ? 0 : m->target, to_region = m->to_region ? m->target : 0;
    ebb__journal(rt, host,
                 (ebb_record){.type = J_RECEIVE,
                              .value = (uint32_t)m->verb,
                              .task = to_task,
                              .region = to_region,
                              .other = m->word});
    ebb__emit_plain(rt, EBB_EV_RECEIVED, to_task, to_region, (uint32_t)m->verb, m->word);
    switch (m->verb) {
    case EBB_MSG_WAKE:
    case EBB_MSG_WORD:
        if (!m->to_region) (void)ebb_task_wake(host, task);
        break;
    case EBB_MSG_CANCEL:
        if (m->to_region && m->left != 0) cancel_within(host, region, m, message);
        else if (m->to_region) ebb_region_cancel(host, region, m->kind, message);
        else ebb_task_cancel(host, task, m->kind, message);
        break;
    case EBB_MSG_CLOSE: ebb_region_close(host, region); break;
    case EBB_MSG_FORCE:
        if (m->to_region) ebb_region_force(host, region);
        else ebb_task_force(host, task);
        break;
    }
    return EBB_OK;
}
