/** What the runtime refuses, by the name that its status has in C: `error.code === 'EBB_ERR_CLOSED'`. */
export class EbbError extends Error {
    /**
     * @param {string} code
     * @param {string} message what, where and what was expected
     */
    constructor(code, message, options) {
        super(message, options);
        this.code = code;
    }

    get name() {
        return 'EbbError';
    }
}

/**
 * A task was asked to stop. It has the name that the platform's own cancellations have, so code that knows
 * AbortError knows this one too; if the cancel began with a timeout it is a TimeoutError.
 */
export class Cancelled extends Error {
    #name;

    /**
     * @param {{ kind: string, severity: string, epoch: number, message: string, cause?: unknown, rootKind?: string }}
     *     why `rootKind`: of the region where the cancel began, if the kind is PARENT
     */
    constructor(why) {
        super(why.message ? `${why.kind}: ${why.message}` : why.kind, { cause: why.cause });
        this.#name = (why.rootKind ?? why.kind) === 'TIMEOUT' ? 'TimeoutError' : 'AbortError';
        this.kind = why.kind;
        this.severity = why.severity;
        this.epoch = why.epoch;
        this.reason = why.message;
    }

    get name() {
        return this.#name;
    }
}

/** True for what a cancelled task ends with: ours, and what fetch and friends throw when their signal aborts. */
export function isAbort(error) {
    return error instanceof Cancelled || (isError(error) && error.name === 'AbortError');
}

/** True for errors of any realm: in jsdom those of the page are no instances of the package's own Error. */
export function isError(value) {
    return value instanceof Error
        || (typeof value === 'object' && value !== null && typeof value.name === 'string'
            && typeof value.message === 'string');
}

/** Calls somebody else's code, a removeEventListener for one, which may throw and must not keep us from going on. */
export function safely(fn) {
    try {
        fn();
    } catch (error) {
        raise(error);
    }
}

/** An error of nobody's: heard as an unhandled rejection, wherever this runs. */
export function raise(error) {
    Promise.reject(error);
}
