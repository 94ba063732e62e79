import { Runtime } from '../index.js';

const later = globalThis.setImmediate ?? byMessage(); /* before any test takes it away */
const STEPS = 100000; /* more than any test needs: one that never ends fails instead */

/** Calls a function in a later turn of the page's loop. */
function byMessage() {
    const { port1, port2 } = new MessageChannel();
    const waiting = [];
    port1.onmessage = () => waiting.shift()();
    return (fn) => {
        waiting.push(fn);
        port2.postMessage(0);
    };
}

/** A turn of the real loop: every promise that can go on has done so when this resolves. */
export function turn() {
    return new Promise((resolve) => {
        later(resolve);
    });
}

/**
 * A host whose loop is stepped by hand, so that a test says when a microtask, a message and a timer come, and
 * what the time is. What is passed to a Runtime is `capabilities`; `counts` says how often each was called.
 *
 * Promises are the real ones: between two steps all of them go as far as they can.
 */
export class VirtualHost {
    time = 0;
    microtasks = [];
    messages = [];
    timers = new Map();
    counts = { queueMicrotask: 0, MessageChannel: 0, postMessage: 0, setTimeout: 0, clearTimeout: 0, now: 0 };
    #lastTimer = 0;

    constructor() {
        const host = this;
        this.capabilities = {
            queueMicrotask: (fn) => {
                this.counts.queueMicrotask++;
                this.microtasks.push(fn);
            },
            MessageChannel: class {
                constructor() {
                    return host.#channel();
                }
            },
            setTimeout: (fn, ms) => this.#setTimeout(fn, ms),
            clearTimeout: (id) => {
                this.counts.clearTimeout++;
                this.timers.delete(id);
            },
            now: () => {
                this.counts.now++;
                return this.time;
            },
        };
    }

    #channel() {
        this.counts.MessageChannel++;
        const port1 = { onmessage: null, close: () => { port1.closed = true; } };
        const port2 = {
            postMessage: (data) => {
                this.counts.postMessage++;
                this.messages.push(() => port1.closed || port1.onmessage({ data }));
            },
        };
        return { port1, port2 };
    }

    #setTimeout(fn, ms) {
        this.counts.setTimeout++;
        this.timers.set(++this.#lastTimer, { fn, ms, due: this.time + ms });
        return this.#lastTimer;
    }

    /** Runs the oldest microtask, or else the oldest message. False if there is neither. */
    async step() {
        const next = this.microtasks.shift() ?? this.messages.shift();
        if (next === undefined) return false;
        next();
        await turn();
        return true;
    }

    /** Runs microtasks only, until there are none; returns how many. */
    async runMicrotasks() {
        await turn();
        for (let n = 0; n < STEPS; n++) {
            if (this.microtasks.length === 0) return n;
            this.microtasks.shift()();
            await turn();
        }
        throw new Error(`more than ${STEPS} microtasks in a row`);
    }

    /** Runs everything but timers. */
    async settle() {
        await turn();
        for (let n = 0; await this.step(); n++) if (n > STEPS) throw new Error(`more than ${STEPS} steps`);
    }

    #nextTimer() {
        let first;
        for (const [id, timer] of this.timers) {
            if (first === undefined || timer.due < first.due) first = { id, ...timer };
        }
        return first;
    }

    /** Lets so many milliseconds pass, with all that happens in them. */
    async pass(ms) {
        const end = this.time + ms;
        await this.settle();
        for (let next = this.#nextTimer(); next !== undefined && next.due <= end; next = this.#nextTimer()) {
            await this.#fire(next);
        }
        this.time = end;
        await this.settle();
    }

    async #fire({ id, fn, due }) {
        this.timers.delete(id);
        this.time = Math.max(this.time, due);
        fn();
        await turn();
        await this.settle();
    }

    /** Until nothing is left to do, at whatever time. */
    async finish() {
        await this.settle();
        for (let n = 0, next = this.#nextTimer(); next !== undefined; n++, next = this.#nextTimer()) {
            if (n > STEPS) throw new Error(`more than ${STEPS} timers`);
            await this.#fire(next);
        }
    }

    /** What a promise gives, once nothing is left to do; an error if it is pending even then. */
    async until(promise) {
        const pending = {};
        promise.catch(() => {});
        await this.finish();
        const first = await Promise.race([promise, turn().then(() => pending)]);
        if (first === pending) throw new Error('nothing is left to do, and it is still pending');
        return first;
    }
}

/**
 * A runtime on a virtual host for one test, traced. When the test is over everything in it has to end, and
 * nothing may be left or have been refused by the table of phases.
 */
export function virtual(t, { capabilities, ...options } = {}) {
    const host = new VirtualHost();
    const rt = new Runtime({ ...host.capabilities, ...capabilities }, { trace: 1 << 20, ...options });
    t.after(() => end(rt, () => host.finish()));
    return { host, rt };
}

/** Ends a runtime by force, and looks at what is left. */
export async function end(rt, finish) {
    if (rt.crash !== undefined) return;
    rt.root.force();
    const closed = rt.close().catch(() => {});
    await finish?.();
    await closed;
    const { tasks, obligations, illegal, regions } = rt.stats();
    if (tasks + obligations + illegal + regions === 0) return;
    const left = JSON.stringify({ tasks, obligations, illegal, regions });
    throw new Error(`the runtime ended with ${left}\n${rt.dump()}`);
}
