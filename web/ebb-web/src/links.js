const SLICE_MS = 8;

/**
 * The signals that were passed in, and whom each of them cancels. A signal has one listener of ours, however many
 * targets, and none once it has no target. Of very many targets some are cancelled at once and the others in later turns:
 * an abort must not hold up the page.
 */
export class Links {
    #bySignal = new Map();
    #abort;
    #now;
    #nextTurn;

    /**
     * @param {(target: object, reason: unknown) => void} abort called for each target of a signal that aborts
     * @param {() => number} now milliseconds
     * @param {(fn: () => void) => void} nextTurn calls a function in a later turn of the host's loop
     */
    constructor(abort, now, nextTurn) {
        this.#abort = abort;
        this.#now = now;
        this.#nextTurn = nextTurn;
    }

    /** Aborts `target` when the signal does. The returned function takes it back. */
    add(signal, target) {
        if (signal.aborted) {
            this.#abort(target, reasonIn(signal));
            return () => {};
        }
        if (!this.#bySignal.has(signal)) this.#bySignal.set(signal, this.#listen(signal));
        const link = this.#bySignal.get(signal);
        link.targets.add(target);
        return () => {
            link.targets.delete(target);
            if (link.targets.size === 0) link.leave();
        };
    }

    #listen(signal) {
        const targets = new Set();
        const abort = () => {
            this.#bySignal.delete(signal);
            this.#tell(targets, reasonIn(signal));
        };
        const leave = () => {
            this.#bySignal.delete(signal);
            signal.removeEventListener('abort', abort);
        };
        signal.addEventListener('abort', abort, { once: true });
        return { targets, leave };
    }

    /** A target that ends before its turn has left the set. */
    #tell(targets, reason) {
        const began = this.#now();
        for (const target of targets) {
            if (this.#now() - began >= SLICE_MS) {
                this.#nextTurn(() => this.#tell(targets, reason));
                return;
            }
            targets.delete(target);
            this.#abort(target, reason);
        }
    }
}

/** What it gives as its reason; one that is not the platform's may throw, and a cancel can't fail. */
function reasonIn(signal) {
    try {
        return signal.reason;
    } catch {
        return undefined;
    }
}
