import { Cx } from './cx.js';
import { safely } from './errors.js';
import { Alarm } from './outcome.js';

/**
 * Who runs the finalizers of a region: a task of the kernel's own, which ends with the region. Its id is known from
 * the first poll of a finalizer on; before that nobody has its cx.
 */
export class Closer {
    #rt;
    #cleanups = new Set();
    #cuts = new Set(); /* finalizers that force came to before they had settled */

    constructor(rt, region) {
        this.#rt = rt;
        this.region = region;
        this.name = `${region.name}.closer`;
        this.id = 0n;
        this.cx = new Cx(rt, this);
    }

    get ended() {
        return this.region.ended;
    }

    get what() {
        return `task ${this.name}`;
    }

    get asker() {
        return this.ended ? 0n : this.id;
    }

    witness() {
        return this.#rt.witness(this.id);
    }

    attach(slot, item) {
        this.region.attach(slot, item);
    }

    detach(slot) {
        this.region.detach(slot);
    }

    /** Calls `cleanup` when the region has closed, unless the returned function is called before. */
    onSettled(cleanup) {
        this.#cleanups.add(cleanup);
        return () => {
            if (this.#cleanups.delete(cleanup)) safely(cleanup);
        };
    }

    finalizerFailed(error) {
        this.region.failed(new Alarm(error));
    }

    /** The budget is over and the finalizer has not settled. It is polled again in the next turn. */
    cut(finalizer) {
        this.#cuts.add(finalizer);
        this.#rt.overdue(this);
    }

    /** The region is about to report. */
    over() {
        const cuts = [...this.#cuts].map(({ pending }) => (
            { site: this.name, region: this.region.name, abandoned: pending }));
        this.region.cut(cuts, cuts.length);
    }

    /** The region has closed. */
    leave() {
        this.#cleanups.forEach(safely);
        this.#cleanups.clear();
        this.cx.settled();
    }
}
