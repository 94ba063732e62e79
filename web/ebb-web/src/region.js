import { STATUS } from './abi.js';
import { Closer } from './closer.js';
import { Finalizer, Obligation } from './obligation.js';
import { Cancelled, EbbError, safely } from './errors.js';
import { checkFunction, printable, regionOptions, taskOptions } from './options.js';
import { Alarm, Outcome } from './outcome.js';
import { Task } from './task.js';

const FAILURES = 100; /* that a report has */
const CUTS = 1000; /* that a report names */

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
    #closer; /* who runs its finalizers, once it has one */
    #attached; /* a Map: finalizers and obligations of its own by slot */
    #failures = []; /* of its tasks, as alarms */
    #suppressed = []; /* what was thrown by tasks that end as cancelled */
    #error = {}; /* the last reason for which its tasks were cancelled, and the error that they got */
    #root = {}; /* the kind that its cancel began with, and its epoch then */
    #reason; /* once it has closed, as #info */
    #info;
    #done;
    #report; /* once it has closed */
    #cuts = []; /* the first of what was forced here and below */
    #cutCount = 0;
    #watched = false; /* has a deadline */
    #prompt; /* tells a failure at once, if nobody waits for `done` */

    /** By the runtime. */
    constructor(rt, parent, name, collect = false) {
        this.#rt = rt;
        this.parent = parent;
        this.name = name;
        this.#prompt = collect || parent === undefined;
        this.#done = Outcome.pending(this, () => this.#failures.forEach((alarm) => alarm.hear()));
        this.done = this.#done.promise;
    }

    /** By the runtime: the kernel knows it now. */
    admitted(id, slot, signal, timeout) {
        this.id = id;
        this.#slot = slot;
        if (timeout !== undefined) this.#watch();
        if (signal !== undefined) this.#unlink = this.#rt.link(signal, this);
    }

    get ended() {
        return this.#report !== undefined;
    }

    /** 0 until it is cancelled; then 1, and one more each time that becomes more severe. */
    get epoch() {
        return this.info().epoch ?? 0;
    }

    /** A region below this one. */
    region(options) {
        return this.#rt.openRegion(this, undefined, options);
    }

    /**
     * Starts a task; its function is not called before this has returned.
     * @param {(cx: import('./cx.js').Cx) => unknown} fn
     * @param {{ name?: string, signal?: AbortSignal, timeout?: number, polls?: number, priority?: number }} options
     */
    spawn(fn, options = {}) {
        checkFunction(fn, 'region.spawn');
        const { name, signal, timeout, polls, priority } = taskOptions(options, fn.name || 'task');
        this.admits(`spawn of ${name}`);
        const rt = this.#rt;
        const due = rt.deadline(timeout);
        const site = rt.abi.site(name);
        const task = new Task(rt, this, fn, name);
        const slot = rt.slots.take(task);
        const id = rt.abi.call.spawn(0n, this.id, due, polls, priority, slot, site);
        const admitted = rt.admit(id, slot, task, `spawn of ${name} in region ${this.name}`, this);
        task.admitted(admitted, slot, signal, timeout);
        rt.schedule();
        return task;
    }

    /**
     * An obligation of the region itself, for who has no task: exactly one of commit and abort has to follow. The
     * region does not close before that; one that is forced aborts it, and reports it as a leak.
     */
    reserve(kind, onAbort = () => {}) {
        const rt = this.#rt;
        const number = rt.abi.obligationKind(kind);
        checkFunction(onAbort, 'region.reserve');
        const what = `reserve(${kind}) in region ${this.name}`;
        this.admits(what);
        const site = rt.abi.site(`${this.name}: ${kind}`);
        rt.clock();
        const obligation = new Obligation(rt, this, kind, onAbort);
        const slot = rt.slots.take(obligation);
        const id = rt.abi.call.region_reserve(0n, this.id, number, slot, site);
        obligation.admitted(rt.admit(id, slot, obligation, what, this), slot);
        this.attach(slot, obligation);
        return obligation;
    }

    /**
     * Runs `fn` when everything in the region has ended, last added first, before the region closes; it may be async
     * and open cleanup regions. What it throws is a failure of the region.
     */
    defer(fn) {
        const rt = this.#rt;
        checkFunction(fn, 'region.defer');
        const what = `defer in region ${this.name}`;
        this.admits(what);
        this.#closer ??= new Closer(rt, this);
        const site = rt.abi.site(`${this.name}: ${fn.name || 'defer'}`);
        const finalizer = new Finalizer(rt, fn, this.#closer);
        const slot = rt.slots.take(finalizer);
        const status = rt.abi.call.region_defer(0n, this.id, slot, site);
        if (status < 0) {
            rt.slots.give(slot, finalizer);
            throw rt.refusal(status, what, this);
        }
        this.attach(slot, finalizer);
    }

    /**
     * The first of some functions to settle, each a task. The others are cancelled, and have ended when this
     * settles.
     */
    async race(fns, options = {}) {
        if (typeof fns?.[Symbol.iterator] !== 'function') {
            throw new TypeError(`region.race: expected functions, found ${printable(fns)}`);
        }
        const list = [...fns];
        list.forEach((fn) => checkFunction(fn, 'region.race'));
        regionOptions(options);
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
        if (!this.ended) this.#rt.verb('region_join', this);
        return this.#doneFor('join');
    }

    /** No new work; what runs goes on to its end. `await region.close()` waits for that. */
    close() {
        if (!this.ended) this.#rt.verb('region_close', this);
        return this.#doneFor('close');
    }

    /**
     * `done`, unless a task in this region asks: awaiting that, it would wait for its own end. This can be seen only
     * while the task's function is on the stack, which is until its first await.
     */
    #doneFor(verb) {
        const asker = this.#rt.running;
        if (this.ended || asker === undefined || !this.holds(asker.region)) return this.done;
        return Outcome.refused(this, new EbbError('EBB_ERR_INVALID',
            `await of ${verb} of region ${this.name}: ${asker.what} is in it and would wait for itself, for ever`));
    }

    /** True for itself and all below it. */
    holds(region) {
        while (region !== undefined && region !== this) region = region.parent;
        return region === this;
    }

    /**
     * Closes it and asks everything in it to stop. Never fails, never blocks, runs nobody's code.
     * @param {string | { kind?: string, message?: string, within?: number, polls?: number }} [reason]
     */
    cancel(reason) {
        if (this.ended) return;
        this.#watch();
        this.#rt.cancelTarget(this, reason);
    }

    /** The budget is over: what has not returned within a few turns is abandoned. */
    force() {
        if (!this.ended) this.#rt.verb('region_force', this);
    }

    /** At the end of an `await using` block: cancels what is left in it, and waits for that. */
    async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
        this.cancel('its block has ended');
        await this.done;
    }

    /** Its state, its cancel request, and how much lives in it; once it has closed, what that was then. */
    info() {
        return this.ended ? this.#info : this.#rt.regionInfo(this.id);
    }

    /** Why it is, or was, cancelled, as the error that says so; undefined if it is not. */
    reason() {
        if (this.ended) return this.#reason;
        const info = this.info();
        if (info.epoch === 0) return undefined;
        return this.errorFor({ ...info, message: this.rootMessage() });
    }

    /** How it ended, once it has: also if `done` is rejected. */
    get report() {
        return this.#report;
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

    /** One error for all tasks that are cancelled for the same reason, as an AbortSignal has one reason for all listeners. */
    errorFor(why) {
        const key = `${why.kind} ${why.severity} ${why.epoch} ${why.message}`;
        if (this.#error.key !== key) {
            const rootKind = why.kind === 'PARENT' ? this.#rootKind() : undefined;
            this.#error = { key, error: new Cancelled({ ...why, rootKind, cause: this.causeOf() }) };
        }
        return this.#error.error;
    }

    /**
     * The kind that the cancel began with, here or above. Each region on the way keeps it: in a deep tree all of them
     * are asked, and the innermost first.
     */
    #rootKind() {
        const passed = [];
        let region = this;
        let info = region.info();
        while (info.kind === 'PARENT' && region.parent !== undefined && region.#root.epoch !== info.epoch) {
            passed.push({ region, epoch: info.epoch });
            region = region.parent;
            info = region.info();
        }
        const kind = info.kind === 'PARENT' ? region.#root.kind : info.kind;
        for (const { region: below, epoch } of passed) below.#root = { epoch, kind };
        return kind;
    }

    #watch() {
        if (!this.#watched) this.#rt.watch(1);
        this.#watched = true;
    }

    /** For messages. */
    get what() {
        return `region ${this.name}`;
    }

    /** Its obligations are the host's to resolve. */
    get asker() {
        return 0n;
    }

    attach(slot, item) {
        this.#attached ??= new Map();
        this.#attached.set(slot, item);
    }

    /** It may be the last thing that the region waited for. */
    detach(slot) {
        this.#rt.slots.give(slot, this.#attached.get(slot));
        this.#attached.delete(slot);
        this.#rt.schedule();
    }

    /** Throws if it has ended: what cancelled it, or by its name. */
    admits(what) {
        if (!this.ended) return;
        const flushed = this.#rt.flushed ? ': the runtime was flushed; make another one' : '';
        if (this.#reason !== undefined && !this.#rt.flushed) throw this.#reason;
        throw new EbbError('EBB_ERR_CLOSED', `${what}: region ${this.name} has ended${flushed}`);
    }

    /**
     * A task in it has failed. Whoever handles its `result` hears of that, or whoever handles `done`; else it is an
     * unhandled rejection. A region that goes on after a failure tells of it at once, one that closes because of
     * it when it has closed.
     */
    failed(alarm) {
        if (this.done.handled) alarm.hear();
        else if (this.#prompt) alarm.ring();
        if (this.#failures.length < FAILURES) this.#failures.push(alarm);
        else alarm.ring();
    }

    /** Something was forced before it had settled, here or below. */
    cut(cuts, count) {
        this.#cutCount += count;
        this.#cuts.push(...cuts.slice(0, CUTS - this.#cuts.length));
    }

    /** A task in it that was cancelled has thrown something else than that. */
    suppressed(error) {
        if (this.#suppressed.length < FAILURES) this.#suppressed.push(error);
    }

    /** The kernel has closed it. What follows from that comes after the batch. */
    over(status, report) {
        const failed = status !== STATUS.OK && status !== STATUS.CANCELLED;
        this.#reason = this.reason();
        this.#info = this.info();
        this.#closer?.over();
        this.#report = {
            status: failed ? 'failed' : this.#reason === undefined ? 'ok' : 'cancelled',
            ...report,
            forced: this.#cuts,
            counts: { ...report.counts, forced: this.#cutCount },
            failures: this.#failures.map((alarm) => alarm.error),
            suppressed: this.#suppressed,
        };
        if (this.#watched) this.#rt.watch(-1);
        this.parent?.cut(this.#cuts, this.#cutCount);
        this.#attached?.forEach((item, slot) => this.#rt.slots.give(slot, item));
        this.#attached = undefined;
        this.#rt.slots.give(this.#slot, this);
        this.#rt.afterBatch(() => this.#leave(failed, status));
    }

    /** Rejects with the first failure that nobody has heard of at its task, else with the first. */
    #leave(failed, status) {
        if (this.#unlink !== undefined) safely(this.#unlink);
        this.#closer?.leave();
        if (!failed) {
            this.#done.resolve(this.#report);
            return;
        }
        if (this.#failures.length === 0) this.failed(new Alarm(this.#rt.abi.error(status, `region ${this.name}`)));
        const failure = this.#failures.find((alarm) => !alarm.heardAtTask) ?? this.#failures[0];
        this.#done.reject(failure.error);
        this.#failures.forEach((alarm) => alarm.ring());
    }

    /** Its runtime has trapped. */
    lost(error) {
        if (this.ended) return;
        this.#info = { state: 'Closed' };
        this.#report = {
            status: 'failed', abandoned: [], leaked: [], forced: [], counts: { abandoned: 0, leaked: 0, forced: 0 },
            failures: [error], suppressed: [],
        };
        if (this.#unlink !== undefined) safely(this.#unlink);
        this.#closer?.leave();
        const alarm = new Alarm(error);
        this.failed(alarm);
        this.#done.reject(error);
        alarm.ring();
    }
}
