const RATES = { live: 1, slow: 0.1, paused: 0 };
const SPACING_MS = 300; /* of the real clock, between two batches in slow motion */
const STEP_MS = 10; /* of the tempo's clock: a step takes that long, so that two of them can be told apart */
const STEP_MOST = 64; /* callbacks of one step: there are some in which the pump polls nothing */

/**
 * The host that the page passes to its Runtime: a clock that can run slower or stand still, and queues that a
 * person may let go one at a time. The kernel can't tell, since all its time and all its turns come from
 * here.
 *
 * `now` never goes back. What is held is let go in the order in which it came. A callback never runs inside
 * of the call that handed it over. After `close` none runs at all.
 */
export class Tempo {
    #real;
    #kernel;
    #mode = 'live';
    #at = 0; /* the tempo's time at #since of the real clock */
    #since;
    #timers = [];
    #held = [];
    #ports = [];
    #alarm; /* of the real clock: for the first timer */
    #drip; /* of the real clock: for the first that is held, in slow motion */
    #stepping = false;
    #closed = false;

    /**
     * @param {object} real the host's own capabilities, as of hostOf
     * @param {{ polls: () => number, ran: (how: string, polls: number) => void }} kernel how many polls it
     *     has made; and what is called after each callback, with what brought it and the polls up to then
     */
    constructor(real, kernel) {
        this.#real = real;
        this.#kernel = kernel;
        this.#since = real.now();
    }

    /** What a Runtime is given. There is no fetch in it: tasks of this page can't leave the page. */
    host() {
        const tempo = this;
        return {
            now: () => this.now(),
            queueMicrotask: (fn) => this.#real.queueMicrotask(() => this.#arrive({ how: 'microtask', fn })),
            setTimeout: (fn, ms) => this.#setTimer({ how: 'timer', fn, due: this.now() + ms }),
            clearTimeout: (timer) => this.#dropTimer(timer),
            MessageChannel: class {
                constructor() {
                    return tempo.#channel();
                }
            },
        };
    }

    /** Milliseconds since it was made, as far as it let them pass. */
    now() {
        return this.#at + (this.#real.now() - this.#since) * RATES[this.#mode];
    }

    /** A promise for the page's own use, on this clock. */
    sleep(ms) {
        return new Promise((resolve) => this.#setTimer({ how: 'scene', fn: resolve, due: this.now() + ms }));
    }

    get mode() {
        return this.#mode;
    }

    set mode(mode) {
        if (!Object.hasOwn(RATES, mode)) throw new TypeError(`no tempo ${mode}`);
        this.#at = this.now();
        this.#since = this.#real.now();
        this.#mode = mode;
        this.#arm();
        if (mode === 'live') this.#release();
        if (mode === 'slow') this.#dripLater(SPACING_MS);
    }

    /** What is held comes again, as if it came now. */
    #release() {
        for (const item of this.#held.splice(0)) this.#real.queueMicrotask(() => this.#arrive(item));
    }

    /** What the next step lets go: `{ how, ms }`, ms from now; undefined: nothing waits. */
    next() {
        if (this.#held.length > 0) return { how: this.#held[0].how, ms: 0 };
        const timer = this.#firstTimer();
        return timer && { how: timer.how, ms: Math.max(0, timer.due - this.now()) };
    }

    /**
     * Lets the next ones go until the pump has polled something; if nothing is held, time jumps to the first
     * timer. Only while it is paused.
     */
    async step() {
        if (this.#stepping) return;
        this.#stepping = true;
        for (let left = STEP_MOST; left > 0 && this.#mode === 'paused' && !this.#closed; left--) {
            const item = this.#nextItem();
            if (item === undefined || this.#run(item)) break;
            /* What follows from it comes first. */
            await new Promise((resolve) => this.#real.setTimeout(resolve, 0));
        }
        this.#stepping = false;
    }

    #nextItem() {
        const item = this.#held.shift();
        if (item !== undefined) {
            this.#at += STEP_MS;
            return item;
        }
        const timer = this.#firstTimer();
        if (timer !== undefined) {
            this.#at = Math.max(this.#at, timer.due);
            this.#dropTimer(timer);
        }
        return timer;
    }

    /** Nothing that was handed over runs any more. */
    close() {
        this.#closed = true;
        this.#held = [];
        this.#timers = [];
        for (const port of this.#ports) port.close(); /* it would keep the runtime */
        this.#real.clearTimeout(this.#alarm);
        this.#real.clearTimeout(this.#drip);
    }

    /* ---- what comes in --------------------------------------------------------------------------------- */

    #arrive(item) {
        if (this.#closed) return;
        if (this.#mode === 'live' && this.#held.length === 0) this.#run(item);
        else this.#hold(item);
    }

    #hold(item) {
        this.#held.push(item);
        if (this.#mode === 'slow') this.#dripLater(SPACING_MS);
        this.#kernel.ran('', this.#kernel.polls());
    }

    /** True if there is something to see: the pump has polled, or a scene goes on. */
    #run(item) {
        const before = this.#kernel.polls();
        try {
            item.fn();
        } finally {
            this.#kernel.ran(item.how, this.#kernel.polls());
        }
        return item.how === 'scene' || this.#kernel.polls() > before;
    }

    /** In slow motion, the next one a little later; at once after one in which nothing was to be seen. */
    #dripLater(ms) {
        if (this.#drip !== undefined || this.#held.length === 0) return;
        this.#drip = this.#real.setTimeout(() => {
            this.#drip = undefined;
            if (this.#mode !== 'slow' || this.#held.length === 0) return;
            this.#dripLater(this.#run(this.#held.shift()) ? SPACING_MS : 0);
        }, ms);
    }

    /**
     * A channel whose messages come through us. Only the end that the Runtime listens at is more than a name.
     */
    #channel() {
        const { port1, port2 } = new this.#real.MessageChannel();
        const ours = { onmessage: undefined, close: () => port1.close() };
        this.#ports.push(port1);
        port1.onmessage = () => this.#arrive({ how: 'message', fn: () => ours.onmessage() });
        return { port1: ours, port2 };
    }

    /* ---- timers ---------------------------------------------------------------------------------------- */

    #setTimer(timer) {
        if (this.#closed) return timer;
        this.#timers.push(timer);
        this.#arm();
        return timer;
    }

    #dropTimer(timer) {
        const at = this.#timers.indexOf(timer);
        if (at >= 0) this.#timers.splice(at, 1);
        const held = this.#held.indexOf(timer); /* it was due, and waited to be let go */
        if (held >= 0) this.#held.splice(held, 1);
    }

    #firstTimer() {
        return this.#timers.reduce((first, timer) => (first?.due <= timer.due ? first : timer), undefined);
    }

    #arm() {
        this.#real.clearTimeout(this.#alarm);
        const first = this.#firstTimer();
        const rate = RATES[this.#mode];
        if (first === undefined || rate === 0) return;
        this.#alarm = this.#real.setTimeout(() => this.#ring(), Math.max(0, (first.due - this.now()) / rate));
    }

    #ring() {
        const now = this.now();
        const due = this.#timers.filter((timer) => timer.due <= now).sort((a, b) => a.due - b.due);
        this.#timers = this.#timers.filter((timer) => timer.due > now);
        for (const timer of due) this.#arrive(timer);
        this.#arm();
    }
}
