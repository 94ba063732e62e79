import { STATUS } from './abi.js';
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
    #unlink = () => {};
    #error;
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
        if (typeof fn !== 'function') throw new TypeError(`region.spawn: expected a function, found ${fn}`);
        const rt = this.#rt;
        const task = new Task(rt, this, fn, options.name ?? (fn.name || 'task'));
        const slot = rt.slots.take(task);
        const id = rt.abi.call.spawn(0n, this.id, rt.deadline(options.timeout), options.polls ?? 0,
            options.priority ?? 0, slot, rt.abi.site(task.name));
        task.admitted(rt.admit(id, slot, task, `spawn of ${task.name} in region ${this.name}`), slot, options.signal);
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
        } finally {
            heat.cancel({ kind: 'RACE_LOST', message: 'another was first' });
            await heat.done.catch(() => {});
        }
    }

    /** Waits until everything in it has ended; then it closes by itself. */
    join() {
        if (!this.ended) this.#rt.verb('region_join', this.id);
        return this.done;
    }

    /** No new work; what runs goes on to its end. `await region.close()` waits for that. */
    close() {
        if (!this.ended) this.#rt.verb('region_close', this.id);
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
        if (!this.ended) this.#rt.verb('region_force', this.id);
    }

    /** Its state, what it was told, and how much lives in it. */
    info() {
        return this.#rt.regionInfo(this.id);
    }

    /** Why it is cancelled, the root cause last. */
    causes() {
        return this.#rt.causes(this.id);
    }

    /* ---- for the runtime -------------------------------------------------------------------------------- */

    /** What the abort of a signal gave as its reason, here or above. */
    causeOf() {
        for (let r = this; r !== undefined; r = r.parent) if (r.cause !== undefined) return r.cause;
        return undefined;
    }

    /** The first failure in it stands. */
    failed(error) {
        this.#error ??= error;
    }

    over(status, report) {
        const { abi, slots } = this.#rt;
        this.#report = report;
        this.#unlink();
        slots.give(this.#slot, this);
        if (status === STATUS.OK || status === STATUS.CANCELLED) {
            this.#resolve({ status: status === STATUS.OK ? 'ok' : 'cancelled', ...report });
        } else {
            this.#reject(this.#error ?? abi.error(status, `region ${this.name}`));
        }
    }

    /** Its runtime has trapped. */
    lost(error) {
        if (this.ended) return;
        this.#report = { abandoned: [], leaked: [] };
        this.#unlink();
        this.#reject(error);
    }
}
