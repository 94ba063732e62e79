import { STATUS } from './abi.js';
import { Cancelled, raise, safely } from './errors.js';
import { checkFunction, checkOptions } from './options.js';
import { Task } from './task.js';

/**
 * A region owns tasks and regions; nothing in it outlives it. It is closed (no new work, what runs may finish),
 * cancelled (what runs is asked to stop, and has a budget to clean up) or forced (the budget is over).
 *
 * `done` settles when everything in it has ended: with a report, or with the first failure of a task in it. A
 * failure that nobody waits for is an unhandled rejection, as that of any promise.
 */
export class Region {
    #rt;
    #slot = 0;
    #unlink;
    #error;
    #suppressed = []; /* what was thrown by tasks that end as cancelled */
    #resolve;
    #reject;
    #report; /* once it has closed */

    /** By the runtime. */
    constructor(rt, parent, name) {
        this.#rt = rt;
        this.parent = parent;
        this.name = name;
        this.done = new Promise((resolve, reject) => {
            this.#resolve = resolve;
            this.#reject = reject;
        });
    }

    /** By the runtime: the kernel knows it now. */
    admitted(id, slot, signal) {
        this.id = id;
        this.#slot = slot;
        if (signal !== undefined) this.#unlink = this.#rt.link(signal, this);
    }

    get ended() {
        return this.#report !== undefined;
    }

    /** 0 until it is cancelled; then 1, and one more each time that becomes more severe. */
    get epoch() {
        return this.ended ? 0 : this.info().epoch;
    }

    /** A region below this one. */
    region(options) {
        return this.#rt.openRegion(this, undefined, options);
    }

    /**
     * Starts a task; its function is not called before this has returned.
     * @param {(cx: import('./task.js').Cx) => unknown} fn
     * @param {{ name?: string, signal?: AbortSignal, timeout?: number, polls?: number, priority?: number }} options
     */
    spawn(fn, options = {}) {
        checkFunction(fn, 'region.spawn');
        const { name, signal, timeout, polls, priority } = checkOptions(options, fn.name || 'task');
        const rt = this.#rt;
        const due = rt.deadline(timeout);
        const site = rt.abi.site(name);
        const task = new Task(rt, this, fn, name);
        const slot = rt.slots.take(task);
        const id = rt.abi.call.spawn(0n, this.id, due, polls, priority, slot, site);
        task.admitted(rt.admit(id, slot, task, `spawn of ${name} in region ${this.name}`), slot, signal);
        rt.schedule();
        return task;
    }

    /**
     * The first of some functions to settle, each a task. The others are cancelled, and have ended when this
     * settles.
     */
    async race(fns, options = {}) {
        const list = [...fns];
        if (list.length === 0) throw new TypeError('region.race: expected at least one function');
        const heat = this.region({ ...options, collect: true, name: options.name ?? 'race' });
        heat.done.catch(() => {}); /* the winner's outcome says it all */
        try {
            return await Promise.race(list.map((fn) => heat.spawn(fn).result));
        } catch (error) {
            if (error.code === 'EBB_ERR_CLOSED' && heat.epoch > 0) throw heat.reason();
            throw error;
        } finally {
            heat.cancel({ kind: 'RACE_LOST', message: 'another was first' });
            await heat.done.catch(() => {});
        }
    }

    /** Waits until everything in it has ended; then it closes by itself. */
    join() {
        if (!this.ended) this.#rt.verb('region_join', this);
        return this.done;
    }

    /** No new work; what runs goes on to its end. `await region.close()` waits for that. */
    close() {
        if (!this.ended) this.#rt.verb('region_close', this);
        return this.done;
    }

    /**
     * Closes it and asks everything in it to stop. Never fails, never blocks, runs nobody's code.
     * @param {string | { kind?: string, message?: string, within?: number, polls?: number }} [reason]
     */
    cancel(reason) {
        if (!this.ended) this.#rt.cancel(this, reason);
    }

    /** The budget is over: what has not returned within a few turns is abandoned. */
    force() {
        if (!this.ended) this.#rt.verb('region_force', this);
    }

    /** Its state, what it was told, and how much lives in it. */
    info() {
        return this.#rt.regionInfo(this.id);
    }

    /** Why it is cancelled, as the error that says so; undefined if it is not. */
    reason() {
        const info = this.info();
        if (info.epoch === 0) return undefined;
        return new Cancelled({ ...info, message: this.rootMessage(), cause: this.causeOf() });
    }

    /** Why it is cancelled: links, the root cause last, and whether some were left out. */
    causes() {
        return this.#rt.causes(this.id);
    }

    /* ---- for the runtime -------------------------------------------------------------------------------- */

    /** What the abort of a signal gave as its reason, here or above. */
    causeOf() {
        for (let r = this; r !== undefined; r = r.parent) if (r.cause !== undefined) return r.cause;
        return undefined;
    }

    /** What was said where the cancel began, here or above. Only reads: unlike causes() it leaves no mark. */
    rootMessage() {
        return this.#rt.rootMessage(this.id);
    }

    /** The first failure in it stands. The root goes on after one, so that is heard at once. */
    failed(error) {
        this.#error ??= error;
        if (this.parent === undefined) raise(error);
    }

    /** A task in it that was cancelled has thrown something else than that. */
    suppressed(error) {
        this.#suppressed.push(error);
    }

    /** The kernel has closed it. What follows from that comes after the batch. */
    over(status, report) {
        this.#report = report;
        this.#rt.slots.give(this.#slot, this);
        this.#rt.afterBatch(() => this.#leave(status, report));
    }

    #leave(status, report) {
        if (this.#unlink !== undefined) safely(this.#unlink);
        if (status === STATUS.OK || status === STATUS.CANCELLED) {
            const suppressed = this.#suppressed;
            this.#resolve({ status: status === STATUS.OK ? 'ok' : 'cancelled', ...report, suppressed });
        } else {
            this.#reject(this.#error ?? this.#rt.abi.error(status, `region ${this.name}`));
        }
    }

    /** Its runtime has trapped. */
    lost(error) {
        if (this.ended) return;
        this.#report = { abandoned: [], leaked: [], counts: { abandoned: 0, leaked: 0 } };
        if (this.#unlink !== undefined) safely(this.#unlink);
        this.#reject(error);
    }
}
