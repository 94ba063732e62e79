/* The ABI between the module and the JavaScript that runs it.
 *
 * A module instance is one runtime: `start` makes it, and there is no other. What crosses is i32 and i64 only:
 * ids, times and counts of 64 bits are i64, which JavaScript sees as a BigInt. Everything else is a *slot*, a
 * number that the host chose for one of its functions, or an offset into the module's memory.
 *
 * An *asker* is the task that asks, 0 for the host. The host runs the code of its tasks between polls, so a
 * task that is parked may ask as well as one that is being polled. What has ended asks for nothing any more:
 * EBB_ERR_STALE.
 *
 * Structs and texts go through the *scratch*, SCRATCH bytes at scratch(): a call that says "fills" has written
 * there what stands beside it, as little-endian words without padding; a message is read from there, up to a 0.
 * It is good until the next call. Memory may grow in any call: views of it are to be made again after each.
 *
 * Callbacks must not throw: an exception would unwind over the kernel's frames. They may call everything
 * but `pump`, which is not re-entered.
 *
 * Any change of this file that a host could notice is another ABI_VERSION; web/ebb-web/src/abi.js has the same
 * table and checks both when it loads a module. */
#ifndef EBB__WEB_ABI_H
#define EBB__WEB_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { ABI_VERSION = 2, SCRATCH = 4096 };

#define EBB__EXPORT(name)       __attribute__((export_name(#name))) web_##name
#define EBB__IMPORT(name, args) __attribute__((import_module("ebb"), import_name(#name))) host_##name args

/* ---- what the host has --------------------------------------------------------------------------------- */

/* One poll of a task, one of a finalizer; `signal` has the bits of ebb_cx, and SIGNAL_OVERDUE once its budget is
 * over. They return a status. `task` is the task that runs the finalizer: the one that deferred it, or the one that
 * the kernel runs for a region, which the host has to wake by this id. */
enum { SIGNAL_OVERDUE = 4 };
int32_t EBB__IMPORT(poll, (int32_t slot, int32_t signal));
int32_t EBB__IMPORT(finalize, (int32_t slot, int32_t signal, uint64_t task));
/* The task is over, finalizers and all. The scratch has its last witness. */
void EBB__IMPORT(ended, (int32_t slot, int32_t status));
/* An obligation was aborted, by whomever. */
void EBB__IMPORT(aborted, (int32_t slot));
/* A region has closed; its id is spent when this returns. */
void EBB__IMPORT(closed, (int32_t slot, int32_t status, int32_t abandoned, int32_t leaked));
/* Bytes of what was asked for, to be copied now. */
enum { BYTES_TRACE = 0, BYTES_JOURNAL = 1, BYTES_DUMP = 2 };
void EBB__IMPORT(bytes, (int32_t what, const void *bytes, size_t n));

/* ---- the runtime ----------------------------------------------------------------------------------------- */

int32_t EBB__EXPORT(abi_version)(void);
void *EBB__EXPORT(scratch)(void);
/* Memory for the host: 0 if there is none. The host says the same size when it gives it back. */
void *EBB__EXPORT(allocate)(size_t n);
void EBB__EXPORT(release)(void *at, size_t n);

/* With a trace and a journal of so many bytes each, 0: none. Patient: a task whose budget is over has its last
 * polls when the host wakes it, since async code needs turns of the host's loop to return in. The scratch has the cleanup budgets of the three
 * severities: ns (i64), polls (i32), 0 for the default. A status. */
int32_t EBB__EXPORT(start)(int32_t runtime_id, uint64_t now, uint32_t trace, uint32_t journal,
                           int32_t patient);

void EBB__EXPORT(advance)(uint64_t now);
void EBB__EXPORT(turn)(uint64_t host_turn, uint64_t batch);
int32_t EBB__EXPORT(pump)(uint32_t max_polls);
uint64_t EBB__EXPORT(next_due)(void);
uint32_t EBB__EXPORT(runnable)(void);
/* Hand over what was recorded since the last time, to `bytes`. */
void EBB__EXPORT(take_trace)(int32_t flush);
void EBB__EXPORT(take_journal)(int32_t flush);
void EBB__EXPORT(dump)(void);
/* Fills: polls, spawned, ended, stale_wakes, leaks, abandoned, illegal, trace_lost (i64 each), then tasks,
 * regions, obligations, timers, runnable, retired, worst_wait of the three lanes (i32 each). */
void EBB__EXPORT(stats)(void);
/* The name of a number, up to a 0. No address: there is no such table, or no event of that number. */
enum {
    NAME_STATUS = 0,
    NAME_STATUS_TEXT = 1, /* its meaning in a line */
    NAME_CANCEL_KIND = 2,
    NAME_EVENT = 3,
    NAME_PHASE = 4,
    NAME_REGION_STATE = 5,
    NAME_SEVERITY = 6,
    NAME_LANE = 7,
    NAME_OBLIGATION = 8
};
const char *EBB__EXPORT(name)(int32_t table, int32_t value);
/* What an id that a constructor returned stands for: EBB_OK or its error. */
int32_t EBB__EXPORT(id_status)(uint64_t id);

/* ---- regions --------------------------------------------------------------------------------------------- */

uint64_t EBB__EXPORT(root)(void);
enum { REGION_COLLECT = 1, REGION_CLEANUP = 2 };
/* `parent` 0: the asker's. `closed` is called with the slot when it has closed. */
uint64_t EBB__EXPORT(region_open)(uint64_t asker, uint64_t parent, int32_t flags, uint64_t deadline,
                                  int32_t priority, int32_t slot, const char *site);
/* It closes by itself when nothing lives in it any more. */
void EBB__EXPORT(region_join)(uint64_t asker, uint64_t region);
void EBB__EXPORT(region_close)(uint64_t asker, uint64_t region);
void EBB__EXPORT(region_cancel)(uint64_t asker, uint64_t region, int32_t kind);
void EBB__EXPORT(region_cancel_within)(uint64_t asker, uint64_t region, int32_t kind, uint64_t deadline,
                                       uint32_t polls);
void EBB__EXPORT(region_force)(uint64_t asker, uint64_t region);
/* An obligation of the region: it keeps the region from closing until it is resolved or the region is forced. A
 * finalizer of the region: runs when its tasks and children have ended. */
uint64_t EBB__EXPORT(region_reserve)(uint64_t asker, uint64_t region, int32_t kind, int32_t slot,
                                     const char *site);
int32_t EBB__EXPORT(region_defer)(uint64_t asker, uint64_t region, int32_t slot, const char *site);
/* Fills: deadline, failed (i64), status, state, kind, severity, epoch, tasks, children, obligations, abandoned,
 * leaked (i32), message (48 bytes). The deadline is that of the cleanup once it is cancelled. */
int32_t EBB__EXPORT(region_info)(uint64_t region);
/* Fills: what was said where its cancel began, here or above (48 bytes). Only looks: no event, no operation. */
int32_t EBB__EXPORT(root_message)(uint64_t region);
/* The i-th task that was abandoned, or obligation that leaked. Fills: id (i64), address of its site (i32). */
enum { WORK_ABANDONED = 0, WORK_LEAKED = 1 };
int32_t EBB__EXPORT(region_work)(uint64_t region, int32_t what, uint32_t i);
/* Fills: links, whether it was cut (i32), then for each link: region, origin (i64), kind, severity (i32),
 * message (48 bytes). */
int32_t EBB__EXPORT(cause_chain)(uint64_t region);

/* ---- tasks ----------------------------------------------------------------------------------------------- */

/* Deadline 0, polls 0: none. */
uint64_t EBB__EXPORT(spawn)(uint64_t asker, uint64_t region, uint64_t deadline, uint32_t polls,
                            int32_t priority, int32_t slot, const char *site);
int32_t EBB__EXPORT(wake)(uint64_t asker, uint64_t task);
void EBB__EXPORT(task_cancel)(uint64_t asker, uint64_t task, int32_t kind);
void EBB__EXPORT(task_force)(uint64_t task);
int32_t EBB__EXPORT(checkpoint)(uint64_t asker);
int32_t EBB__EXPORT(mask)(uint64_t asker);
int32_t EBB__EXPORT(unmask)(uint64_t asker);
/* The bits as `poll` has them, or a status below 0. */
int32_t EBB__EXPORT(signal)(uint64_t task);
/* Fills: region, deadline (i64), phase, mask, lane, epoch, kind, severity, forced, polls, priority (i32),
 * message (48 bytes). */
int32_t EBB__EXPORT(task_info)(uint64_t task);
/* Fills: task, region, deadline (i64), epoch, phase, severity, kind, polls, priority (i32). */
int32_t EBB__EXPORT(witness)(uint64_t task);
/* The scratch has two of them, the earlier first. */
int32_t EBB__EXPORT(witness_check)(void);

/* ---- what a task has to do, and waits for ---------------------------------------------------------------- */

uint64_t EBB__EXPORT(reserve)(uint64_t asker, int32_t kind, int32_t slot, const char *site);
int32_t EBB__EXPORT(commit)(uint64_t asker, uint64_t obligation);
int32_t EBB__EXPORT(abort)(uint64_t asker, uint64_t obligation);
int32_t EBB__EXPORT(defer)(uint64_t asker, int32_t slot, const char *site);
uint64_t EBB__EXPORT(timer_arm)(uint64_t task, uint64_t due);
int32_t EBB__EXPORT(timer_disarm)(uint64_t timer);

#endif
