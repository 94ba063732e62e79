import { SIGNAL, STATUS } from './abi.js';
import { Cx } from './cx.js';
import { start } from './obligation.js';
import { Cancelled, isAbort, safely } from './errors.js';
import { FOREVER } from './options.js';
import { Alarm, Outcome } from './outcome.js';

/**
 * A task: an async function that the kernel polls.
 *
 * Its first poll calls the function; every later one only tells it things. The function's own code runs between
 * polls, when promises say so, and asks the kernel in the task's name. When its promise settles the task is woken,
 * and the poll that follows returns how it ended. So everything that resumes the function through its `cx` happens
 * in a poll, in the order of the lanes, and nothing that a host calls does more than wake.
 */
export class Task {
    #rt;
    #fn;
    #slot = 0;
    #status = STATUS.PENDING; /* what the function ended with, once it has */
    #value;
    #error;
    #cleanups; /* a Set: called once, when the function's promise settles */
    #attached; /* a Map: finalizers and obligations by slot; what is left is given back at the end */
    #unlink;
    #result; /* { promise, resolve, reject }, once somebody has asked for it */
    #final = STATUS.PENDING; /* what the task ended with, once it has */
    #witness; /* the last one, if it was ever cancelled */
    #alarm; /* of its failure */
    #watched = false; /* has a deadline */
    #cut = false; /* force came before the function or a finalizer had settled */

    /** By Region.spawn. */
    constructor(rt, region, fn, name) {
        this.#rt = rt;
        this.#fn = fn;
        this.region = region;
        this.name = name;
        this.cx = new Cx(rt, this);
    }

    /** By Region.spawn: the kernel knows it now. */
    admitted(id, slot, signal, timeout) {
        this.id = id;
        this.#slot = slot;
        if (timeout !== undefined) this.#watch();
        if (signal !== undefined) this.#unlink = this.#rt.link(signal, this);
    }

    get ended() {
        return this.#final !== STATUS.PENDING;
    }

    /** For messages. */
    get what() {
        return `task ${this.name}`;
    }

    /** In whose name the kernel is asked: nobody's, once it has ended. */
    get asker() {
        return this.ended ? 0n : this.id;
    }

    /** A promise of what its function returned; rejected with what it threw, or with Cancelled. */
    get result() {
        if (this.#result === undefined) {
            this.#result = Outcome.pending(this, () => this.#alarm?.hearAtTask());
            if (this.ended) this.#tell();
        }
        return this.#result.promise;
    }

    get epoch() {
        return this.witness().epoch;
    }

    /** What an observer holds of its cancellation; of one that has ended, the last. */
    witness() {
        if (!this.ended) return this.#rt.witness(this.id);
        return this.#witness ?? neverCancelled(this);
    }

    /** Asks it to stop. Never fails, and never runs its code. */
    cancel(reason) {
        if (this.ended) return;
        this.#watch();
        this.#rt.cancelTarget(this, reason);
    }

    /** Its budget is over: what does not return within a few turns is abandoned. */
    force() {
        if (this.ended) return;
        this.#rt.clock();
        this.#rt.abi.call.task_force(this.id);
        this.#rt.schedule();
    }

    /** One poll. */
    poll(signal) {
        if (this.#fn === undefined) this.cx.polled(signal);
        else this.#begin();
        if (signal !== 0) this.#watch();
        this.cx.signalled(signal);
        if (signal & SIGNAL.OVERDUE && this.#status === STATUS.PENDING) this.cut();
        return this.#status;
    }

    /** The kernel's clock keeps page time as long as a deadline depends on it. */
    #watch() {
        if (!this.#watched) this.#rt.watch(1);
        this.#watched = true;
    }

    /** Its budget is over and its code has not settled. It is polled again in the next turn. */
    cut() {
        this.#cut = true;
        this.#rt.overdue(this);
    }

    #begin() {
        const fn = this.#fn;
        this.#fn = undefined;
        start(this.#rt, this, fn, (value) => this.#returned(value), (error) => this.#threw(error));
    }

    #returned(value) {
        if (!this.ended) this.#value = value;
        this.#settle(STATUS.OK);
    }

    #threw(error) {
        if (!this.ended) this.#error = error;
        this.#settle(this.ended ? STATUS.CANCELLED : this.#fate(error));
    }

    /**
     * What the task returns for what its function threw. A Cancelled of another task that reaches one which is not
     * cancelled is a failure like any other: its work was not done.
     */
    #fate(error) {
        return isAbort(error) && this.cx.asked ? STATUS.CANCELLED : STATUS.FAILED;
    }

    /** One that was abandoned may still come here: a late wake, which the kernel counts. */
    #settle(status) {
        this.#status = status;
        this.#cleanUp();
        this.#rt.wake(this.id);
    }

    #cleanUp() {
        this.#cleanups?.forEach(safely);
        this.#cleanups = undefined;
        this.cx.settled();
    }

    /** Calls `cleanup` when the function settles, unless the returned function is called before. */
    onSettled(cleanup) {
        this.#cleanups ??= new Set();
        this.#cleanups.add(cleanup);
        return () => {
            if (this.#cleanups?.delete(cleanup)) safely(cleanup);
        };
    }

    attach(slot, item) {
        this.#attached ??= new Map();
        this.#attached.set(slot, item);
    }

    detach(slot) {
        this.#rt.slots.give(slot, this.#attached.get(slot));
        this.#attached.delete(slot);
    }

    /** A finalizer of it has failed: that is its failure, if it has none. */
    finalizerFailed(error) {
        if (this.#status === STATUS.OK && this.#error === undefined) this.#error = error;
        else this.region.suppressed(error);
    }

    /**
     * The kernel has ended it, and knows nothing of it any more once this has returned. Nothing is asked for here: what
     * follows from it comes after the batch.
     */
    over(status, witness) {
        if (status !== STATUS.OK) this.#error = this.#failure(status);
        this.#witness = witness;
        this.#final = status;
        if (this.#watched) this.#rt.watch(-1);
        if (this.#cut) this.region.cut([this.#cutName()], 1);
        for (const slot of this.#attached?.keys() ?? []) this.detach(slot);
        this.#rt.slots.give(this.#slot, this);
        this.#rt.afterBatch(() => this.#leave());
    }

    #cutName() {
        return { site: this.name, region: this.region.name, abandoned: this.#status === STATUS.PENDING };
    }

    #leave() {
        if (this.#unlink !== undefined) safely(this.#unlink);
        this.#cleanUp();
        if (this.#result !== undefined) this.#tell();
    }

    #tell() {
        if (this.#final === STATUS.OK) this.#result.resolve(this.#value);
        else this.#result.reject(this.#error);
    }

    #failure(status) {
        if (status === STATUS.CANCELLED) return this.#cancelled();
        const thrown = this.#status === STATUS.FAILED || this.#error !== undefined;
        const error = thrown ? this.#error : this.#rt.abi.error(status, `task ${this.name}`);
        this.#alarm = new Alarm(error);
        if (this.#result?.promise.handled) this.#alarm.hearAtTask();
        this.region.failed(this.#alarm);
        return error;
    }

    /** What it threw instead of that it was cancelled is not lost: the region's report has it. */
    #cancelled() {
        if (this.#status === STATUS.CANCELLED) return this.#error;
        if (this.#error !== undefined) this.region.suppressed(this.#error);
        return this.cx.reason() ?? new Cancelled({
            kind: 'TIMEOUT', severity: 'urgent', epoch: 0, message: 'its time was over before its first poll',
        });
    }

    /** Its runtime has trapped. */
    lost(error) {
        if (this.ended) return;
        this.#error = error;
        this.#final = STATUS.FAULTED;
        this.#leave();
    }
}

/** The witness of a task that has ended without ever being asked to. */
function neverCancelled(task) {
    return {
        task: task.id, region: task.region.id, epoch: 0, phase: 'Completed', severity: 'none', kind: 'NONE',
        budget: { deadline: FOREVER, polls: 0, priority: 0 },
    };
}
