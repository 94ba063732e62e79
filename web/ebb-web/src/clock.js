const STEP_MS = 1000; /* that one tick advances the kernel's time by, at most */

/**
 * The kernel's time: how long the page could run. Timers of a hidden tab are throttled, those of a frozen one stand
 * still, and a deadline must not pass while nobody can work towards it. So while there is a deadline the runtime
 * ticks at least every STEP_MS, and a tick that comes later advances the time by STEP_MS only.
 *
 * A sleep is the user's own timer and follows the host: what the kernel's time leaves out is taken off it.
 */
export class Clock {
    #now;
    #epoch; /* the host's time at which the kernel's was 0, moved on by what was left out */
    #read; /* the host's time at the last look */
    #deadlines = 0;
    #sleeps = new Set();

    /** @param {() => number} now milliseconds of the host */
    constructor(now) {
        this.#now = now;
        this.#epoch = this.#read = now();
    }

    /** Milliseconds until the next tick is due, if that is what is to come first. */
    get tickMs() {
        return this.#deadlines > 0 ? STEP_MS : Infinity;
    }

    /** One deadline more, or less. */
    watch(n) {
        this.#deadlines += n;
    }

    /** Nanoseconds. */
    tell() {
        const host = this.#now();
        const late = host - this.#read - STEP_MS;
        this.#read = host;
        if (late > 0 && this.#deadlines > 0) this.#leaveOut(late);
        return BigInt(Math.round((host - this.#epoch) * 1e6));
    }

    #leaveOut(ms) {
        this.#epoch += ms;
        const span = BigInt(Math.round(ms * 1e6));
        for (const sleep of this.#sleeps) sleep.sooner(span);
    }

    /** `sleep.sooner(ns)` is called when it has to end so much sooner than it said. Returns what takes it back. */
    slept(sleep) {
        this.#sleeps.add(sleep);
        return () => this.#sleeps.delete(sleep);
    }
}
