/**
 * The signals that were passed in, and whom each of them cancels. A signal has one listener of ours, however many
 * targets, and none once it has no target.
 */
export class Links {
    #bySignal = new Map();
    #abort;

    /** @param {(target: object, reason: unknown) => void} abort called for each target of a signal that aborts */
    constructor(abort) {
        this.#abort = abort;
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
            targets.forEach((target) => this.#abort(target, reasonIn(signal)));
        };
        const leave = () => {
            this.#bySignal.delete(signal);
            signal.removeEventListener('abort', abort);
        };
        signal.addEventListener('abort', abort, { once: true });
        return { targets, leave };
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
