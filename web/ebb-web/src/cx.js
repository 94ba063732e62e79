import { SIGNAL, STATUS } from './abi.js';
import { Finalizer, Obligation } from './obligation.js';
import { Cancelled, EbbError, safely } from './errors.js';
import { checkFunction, checkSignal, checkTarget, FOREVER, nanoseconds } from './options.js';
import { Outcome } from './outcome.js';

/**
 * What a task's function is given: who it is, and all that it may ask for. Everything that waits here is a
 * checkpoint. After the task has ended every method throws.
 */
export class Cx {
    #rt;
    #task;
    #controller;
    #cleanup; /* the controller of the signal under a mask, once the other one has aborted */
    #aborted = false; /* the poll that aborts the signal has been */
    #rejected = false; /* a wait of it was rejected because it is cancelled */
    #waits; /* a Set */
    #joint; /* a Map: of each foreign signal, the one that follows it and ours */

    constructor(rt, task) {
        this.#rt = rt;
        this.#task = task;
    }

    get task() {
        return this.#task;
    }

    /**
     * An AbortSignal that aborts in the pump turn after a request, once nothing masks it. To clean up, under a mask or
     * in a finalizer, there is another one after that, which aborts at force.
     */
    get signal() {
        if (this.#cleaning) {
            this.#cleanup ??= new AbortController();
            return this.#cleanup.signal;
        }
        if (this.#controller === undefined) {
            this.#controller = new AbortController();
            if (this.#aborted) this.#controller.abort(this.reason());
        }
        return this.#controller.signal;
    }

    get #cleaning() {
        return this.#aborted && !this.#task.ended && !this.cancelled;
    }

    get #bits() {
        return this.#task.ended ? SIGNAL.STOP : this.#rt.abi.call.signal(this.#task.id);
    }

    /** True once the task is asked to stop and is not masked. Acknowledges nothing. */
    get cancelled() {
        return (this.#bits & SIGNAL.CANCEL) !== 0;
    }

    /** True once the region admits no more work: finish what you have, take nothing new. */
    get stopping() {
        return this.#bits !== 0;
    }

    /** Asked to stop, masked or not. */
    get asked() {
        return this.#task.witness().epoch > 0;
    }

    /** Why it is asked to stop, as the error that says so; undefined if it is not. */
    reason() {
        if (this.#task.ended) return undefined;
        const info = this.#rt.info(this.#task.id);
        if (info.epoch === 0) return undefined;
        if (info.kind === 'PARENT') info.message = this.#task.region.rootMessage();
        const { cause, region } = this.#task;
        return cause === undefined ? region.errorFor(info) : new Cancelled({ ...info, cause });
    }

    #alive(what) {
        if (!this.#task.ended) return this.#task.id;
        throw this.#stale(what);
    }

    #stale(what) {
        return new EbbError('EBB_ERR_STALE', `cx.${what}: task ${this.#task.name} has ended`);
    }

    /** What a cancelled task is refused is not an error of its own: it stops there, as at a checkpoint. */
    #check(status, what) {
        if (status === STATUS.CANCELLED) throw this.reason();
        if (status < 0) throw this.#rt.abi.error(status, `cx.${what} of task ${this.#task.name}`);
        return status;
    }

    /** A place where the task may stop: throws Cancelled if it is asked to and not masked, and acknowledges that. */
    checkpoint() {
        const { call } = this.#rt.abi;
        const id = this.#alive('checkpoint');
        if ((this.#check(call.signal(id), 'checkpoint') & SIGNAL.CANCEL) === 0) return;
        this.#rt.clock();
        if (call.checkpoint(id) === STATUS.CANCELLED) throw this.reason();
    }

    /** Runs `fn` with cancellation held back, across its awaits. Nests to 32. */
    async mask(fn) {
        checkFunction(fn, 'cx.mask');
        if (this.#task.ended) await this.#wait('mask', () => {});
        this.#rt.clock();
        this.#check(this.#rt.abi.call.mask(this.#alive('mask')), 'mask');
        try {
            return await fn(this);
        } finally {
            this.#unmask();
        }
    }

    /** A request that waited for this takes effect in the next turn. */
    #unmask() {
        if (this.#task.ended) return;
        this.#rt.clock();
        this.#check(this.#rt.abi.call.unmask(this.#task.id), 'mask');
        if (this.cancelled) this.#rt.wake(this.#task.id);
    }

    /**
     * A promise to resolve something: exactly one of commit and abort has to follow. `onAbort` is called when it
     * is aborted, also because the task ended without either, which is reported as a leak.
     */
    reserve(kind, onAbort = () => {}) {
        const { abi, slots } = this.#rt;
        const number = abi.obligationKind(kind);
        checkFunction(onAbort, 'cx.reserve');
        const task = this.#alive('reserve');
        const site = abi.site(`${this.#task.name}: ${kind}`);
        this.#rt.clock();
        const obligation = new Obligation(this.#rt, this.#task, kind, onAbort);
        const slot = slots.take(obligation);
        const id = abi.call.reserve(task, number, slot, site);
        const what = `cx.reserve(${kind}) of task ${this.#task.name}`;
        obligation.admitted(this.#rt.admit(id, slot, obligation, what, this), slot);
        this.#task.attach(slot, obligation);
        return obligation;
    }

    /** Runs `fn` when the task has ended, last added first, masked; it may be async and open cleanup regions. */
    defer(fn) {
        const { abi, slots } = this.#rt;
        checkFunction(fn, 'cx.defer');
        const task = this.#alive('defer');
        const site = abi.site(`${this.#task.name}: ${fn.name || 'defer'}`);
        const finalizer = new Finalizer(this.#rt, fn, this.#task);
        const slot = slots.take(finalizer);
        const status = abi.call.defer(task, slot, site);
        if (status < 0) slots.give(slot, finalizer);
        this.#check(status, 'defer');
        this.#task.attach(slot, finalizer);
    }

    /** A region of this task's own: what is open when the task returns is cancelled and waited for. */
    region(options) {
        this.#alive('region');
        return this.#rt.openRegion(this.#task.region, this.#task, options, this);
    }

    /* ---- waiting ---------------------------------------------------------------------------------------- */

    /** Waits so many milliseconds. */
    sleep(ms) {
        return this.#wait('sleep', (wait) => {
            wait.due = this.#rt.deadline(nanoseconds(ms, 'cx.sleep'));
            let timer = this.#arm(wait.due);
            const awake = this.#rt.slept({
                sooner: (span) => {
                    if (wait.due === FOREVER) return;
                    wait.due = wait.due > span ? wait.due - span : 1n;
                    this.#rt.disarm(timer);
                    timer = this.#arm(wait.due);
                },
            });
            wait.drop = () => {
                awake();
                this.#rt.disarm(timer);
            };
            this.#rt.schedule();
        });
    }

    #arm(due) {
        const id = this.#rt.abi.call.timer_arm(this.#task.id, due);
        this.#check(this.#rt.abi.call.id_status(id), 'sleep');
        return id;
    }

    /** Lets others run first. */
    yield() {
        return this.#wait('yield', (wait) => {
            wait.due = 0n;
            this.#rt.wakeWaiter(this.#task);
        });
    }

    /** Waits for a promise of anybody's. What it stands for goes on if the task is cancelled meanwhile. */
    wait(promise) {
        const theirs = Promise.resolve(promise);
        theirs.catch(() => {}); /* it was handed to us, also if we do not wait for it any more */
        return this.#wait('wait', (wait) => {
            this.#notForItself(Outcome.ownerOf(promise));
            const settled = (settle) => (value) => {
                if (!this.#waits.has(wait)) return;
                wait.due = 0n;
                wait.settle = () => settle(value);
                this.#rt.wakeWaiter(this.#task);
            };
            theirs.then(settled(wait.resolve), settled(wait.reject));
        });
    }

    /** A task that waits for its own end, or for that of a region it is in, would wait for ever. */
    #notForItself(owner) {
        if (owner === undefined || (owner !== this.#task && !owner.holds?.(this.#task.region))) return;
        const what = owner === this.#task ? 'itself' : `region ${owner.name}, which it is in`;
        throw new EbbError('EBB_ERR_INVALID', `cx.wait: task ${this.#task.name} would wait for ${what}, for ever`);
    }

    /** The next event of that type. Its listener goes when the wait is over, whatever ended it. */
    once(target, type, options) {
        return this.#wait('once', (wait) => {
            checkTarget(target, type, 'cx.once');
            const heard = (event) => {
                if (wait.due !== undefined) return;
                wait.due = 0n;
                wait.settle = () => wait.resolve(event);
                this.#rt.wakeWaiter(this.#task);
            };
            target.addEventListener(type, heard, options);
            wait.drop = () => target.removeEventListener(type, heard, options);
        });
    }

    /**
     * A promise that is settled in a poll: fulfilled once `wait.due` has come, or rejected, and acknowledged, when
     * the task is cancelled. `drop` is called at its end.
     *
     * The first wait of a cancelled task is rejected at once. One that goes on waiting all the same is told in a poll
     * each time, which its budget counts, and one that has ended in a later turn: a loop that swallows what it is told
     * must not keep the page from everything else.
     */
    #wait(what, begin) {
        const wait = { what, due: undefined, drop: () => {} };
        wait.promise = new Promise((resolve, reject) => {
            Object.assign(wait, { settle: resolve, resolve, reject });
            if (this.#task.ended) {
                this.#rt.nextTurn(() => reject(this.#stale(what)));
                return;
            }
            this.#start(begin, wait);
            this.#waits ??= new Set();
            this.#waits.add(wait);
        });
        return wait.promise;
    }

    #start(begin, wait) {
        if (!this.cancelled) {
            begin(wait);
        } else if (this.#rejected) {
            this.#rt.wakeWaiter(this.#task);
        } else {
            this.#rejected = true;
            this.checkpoint(); /* throws */
        }
    }

    /** Listens until the task settles. The returned function stops it before. */
    on(target, type, listener, options) {
        this.#alive('on');
        checkTarget(target, type, 'cx.on');
        if (typeof listener !== 'object') checkFunction(listener, 'cx.on');
        target.addEventListener(type, listener, options);
        return this.#task.onSettled(() => target.removeEventListener(type, listener, options));
    }

    /** The host's fetch, aborted when the task is cancelled, its body included. */
    async fetch(input, init) {
        const fetch = this.#rt.capability('fetch');
        if (this.#task.ended || this.cancelled) await this.#wait('fetch', () => {});
        const both = this.#either(init?.signal ?? (typeof input === 'object' ? input?.signal : undefined));
        try {
            return await fetch(input, { ...init, signal: both.signal });
        } catch (error) {
            both.failed();
            if (this.cancelled) this.checkpoint();
            throw error;
        }
    }

    /**
     * Our signal, or one that aborts with it or with theirs. There is one for each of theirs: it lives as long as a
     * body may come that it aborts, which is until theirs has aborted, no fetch with it was well, or the task settles.
     */
    #either(theirs) {
        if (theirs === undefined || theirs === null) return { signal: this.signal, failed: () => {} };
        checkSignal(theirs);
        this.#joint ??= new Map();
        let joint = this.#joint.get(theirs);
        if (joint === undefined || (joint.signal.aborted && this.#cleaning)) {
            joint = this.#follow(theirs);
            this.#joint.set(theirs, joint);
        }
        joint.fetches += 1;
        return joint;
    }

    #follow(theirs) {
        const both = new AbortController();
        const abort = () => {
            both.abort(theirs.reason);
            leave();
        };
        const leave = this.#task.onSettled(() => {
            if (this.#joint.get(theirs) === joint) this.#joint.delete(theirs);
            theirs.removeEventListener('abort', abort);
        });
        if (theirs.aborted) both.abort(theirs.reason);
        else theirs.addEventListener('abort', abort, { once: true });
        if (this.cancelled) both.abort(this.reason());
        const failed = () => {
            joint.fetches -= 1;
            if (joint.fetches === 0) leave();
        };
        const joint = { signal: both.signal, both, fetches: 0, failed, cleanup: this.#cleaning };
        return joint;
    }

    /* ---- for the task ----------------------------------------------------------------------------------- */

    /** A poll, with the bits of the kernel. */
    polled(signal) {
        if (!(this.#waits?.size > 0)) return;
        const cancelled = (signal & SIGNAL.CANCEL) !== 0;
        if (cancelled) {
            this.#rejected = true;
            this.#rt.abi.call.checkpoint(this.#task.id);
        }
        const reason = cancelled ? this.reason() : undefined;
        for (const wait of this.#waits) {
            if (cancelled) this.#end(wait, () => wait.reject(reason));
            else if (wait.due !== undefined && wait.due <= this.#rt.now) this.#end(wait, wait.settle);
        }
    }

    /** The end of a poll: if it is asked to stop, whoever has its signal hears of it. */
    signalled(signal) {
        if ((signal & SIGNAL.CANCEL) === 0) return;
        this.#aborted = true;
        if (this.#controller === undefined && this.#cleanup === undefined && this.#joint === undefined) return;
        const reason = this.reason();
        const forced = (signal & SIGNAL.OVERDUE) !== 0;
        this.#controller?.abort(reason); /* does nothing the second time */
        if (forced) this.#cleanup?.abort(reason);
        for (const { both, cleanup } of this.#joint?.values() ?? []) if (forced || !cleanup) both.abort(reason);
    }

    #end(wait, settle) {
        this.#waits.delete(wait);
        safely(wait.drop);
        settle();
    }

    /** Nothing of it waits any more. */
    settled() {
        for (const wait of this.#waits ?? []) {
            wait.promise.catch(() => {}); /* whoever could catch it has returned */
            this.#end(wait, () => this.#rt.nextTurn(() => wait.reject(this.#stale(wait.what))));
        }
    }
}
