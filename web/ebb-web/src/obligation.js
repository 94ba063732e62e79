import { SIGNAL, STATUS } from './abi.js';
import { isAbort } from './errors.js';

/** A promise of a task, or of a region, to resolve something. */
export class Obligation {
    #rt;
    #owner;
    #onAbort;
    #slot;
    #resolved = false;

    /** @param {Task | Region} owner */
    constructor(rt, owner, kind, onAbort) {
        this.#rt = rt;
        this.#owner = owner;
        this.#onAbort = onAbort;
        this.kind = kind;
    }

    admitted(id, slot) {
        this.id = id;
        this.#slot = slot;
    }

    /** Committed or aborted, by whomever. */
    get resolved() {
        return this.#resolved;
    }

    #resolve(status, verb) {
        if (status < 0) throw this.#rt.abi.error(status, `${verb} of ${this.kind} of ${this.#owner.what}`);
        this.#resolved = true;
        this.#owner.detach(this.#slot);
    }

    /** It is done. The second resolution of either kind throws. */
    commit() {
        this.#rt.clock();
        this.#resolve(this.#rt.abi.call.commit(this.#owner.asker, this.id), 'commit');
    }

    /** It is not done, and won't be; calls onAbort now, or after the onAbort that this is called from. */
    abort() {
        this.#resolve(this.#rt.abi.call.abort(this.#owner.asker, this.id), 'abort');
    }

    /** By the kernel, whoever aborted it. */
    aborted() {
        this.#resolved = true;
        this.#rt.runHook(this.#onAbort);
    }
}

/** What runs when a task, or all in a region, has ended: an async function that is polled until it has settled. */
export class Finalizer {
    #rt;
    #fn;
    #task;
    #status = STATUS.PENDING;

    constructor(rt, fn, task) {
        this.#rt = rt;
        this.#fn = fn;
        this.#task = task;
    }

    /** One poll, by the task of that id: a region's is the kernel's own, and known from here on. */
    finalize(signal, id) {
        const fn = this.#fn;
        this.#task.id = id;
        this.#fn = undefined;
        this.#task.cx.polled(signal);
        this.#task.cx.signalled(signal);
        if (signal & SIGNAL.OVERDUE && fn !== undefined) this.#rt.overdue(this.#task);
        else if (signal & SIGNAL.OVERDUE && this.#status === STATUS.PENDING) this.#task.cut(this);
        if (fn !== undefined) {
            start(this.#rt, this.#task, fn, () => this.#settle(STATUS.OK), (error) => this.#threw(error));
        }
        return this.#status;
    }

    get pending() {
        return this.#status === STATUS.PENDING;
    }

    /** One that was abandoned may still come here: its region has reported, and nobody hears of it. */
    #threw(error) {
        const cancelled = this.#task.ended || (isAbort(error) && this.#task.cx.asked);
        if (!cancelled) this.#task.finalizerFailed(error);
        this.#settle(cancelled ? STATUS.CANCELLED : STATUS.FAILED);
    }

    #settle(status) {
        this.#status = status;
        this.#rt.wake(this.#task.id);
    }
}

/** Calls an async function of a task; exactly one of the two hears of its end, never before this has returned. */
export function start(rt, task, fn, done, failed) {
    let promise;
    rt.running = task;
    try {
        promise = Promise.resolve(fn(task.cx));
    } catch (error) {
        promise = Promise.reject(error);
    } finally {
        rt.running = undefined;
    }
    promise.then(done, failed);
}
