/**
 * A promise that knows whether somebody handles it. `then` is what `await`, `catch`, `finally` and the
 * combinators of Promise call, so reading a property that holds one handles nothing. What `then` returns is a
 * plain promise: a handler that passes a rejection on is the platform's business again.
 *
 * The outcome itself is never an unhandled rejection. Failures are, by an Alarm each.
 */
export class Outcome extends Promise {
    #handled = false;
    #onHandled;
    #owner;

    static get [Symbol.species]() {
        return Promise;
    }

    /** @returns {{ promise: Outcome, resolve: Function, reject: Function }} `onHandled` is called once */
    static pending(owner, onHandled) {
        const settle = {};
        const promise = new Outcome((resolve, reject) => Object.assign(settle, { resolve, reject }));
        super.prototype.then.call(promise, undefined, () => {});
        promise.#owner = owner;
        promise.#onHandled = onHandled;
        return { promise, ...settle };
    }

    /** One that is rejected, which nobody hears of who does not handle it. */
    static refused(owner, error) {
        const { promise, reject } = Outcome.pending(owner);
        reject(error);
        return promise;
    }

    /** The task or region that a promise is the outcome of; undefined for any other value. */
    static ownerOf(value) {
        return value instanceof Outcome ? value.#owner : undefined;
    }

    get handled() {
        return this.#handled;
    }

    then(fulfilled, rejected) {
        if (!this.#handled) {
            this.#handled = true;
            this.#onHandled?.();
        }
        return super.then(fulfilled, rejected);
    }
}

/**
 * A failure that somebody has to hear of. Once it rings it is an unhandled rejection, as that of any promise: the
 * platform tells of it unless it is heard in the same turn.
 */
export class Alarm {
    #heard = false;
    #atTask = false;
    #rejected;

    constructor(error) {
        this.error = error;
    }

    /** Somebody handles the task's `result`. */
    get heardAtTask() {
        return this.#atTask;
    }

    ring() {
        if (!this.#heard) this.#rejected ??= Promise.reject(this.error);
    }

    hearAtTask() {
        this.#atTask = true;
        this.hear();
    }

    hear() {
        this.#heard = true;
        this.#rejected?.catch(() => {});
    }
}
