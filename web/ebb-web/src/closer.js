import { Cx } from './cx.js';
import { safely } from './errors.js';

/**
 * Who runs the finalizers of a region: a task of the kernel's own, which ends with the region. Its id is known from
 * the first poll of a finalizer on; before that nobody has its cx.
 */
export class Closer {
    #rt;
    #cleanups = new Set();

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
        this.region.failed(error, false);
    }

    /** The region has closed. */
    leave() {
        this.#cleanups.forEach(safely);
        this.#cleanups.clear();
        this.cx.settled();
    }
}
