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
 * AbortError knows this one too.
 */
export class Cancelled extends Error {
    /** @param {{ kind: string, severity: string, epoch: number, message: string, cause?: unknown }} why */
    constructor(why) {
        super(why.message ? `${why.kind}: ${why.message}` : why.kind, { cause: why.cause });
        this.kind = why.kind;
        this.severity = why.severity;
        this.epoch = why.epoch;
        this.reason = why.message;
    }

    get name() {
        return 'AbortError';
    }
}

/** True for what a cancelled task ends with: ours, and what fetch and friends throw when their signal aborts. */
export function isAbort(error) {
    return error instanceof Error && error.name === 'AbortError';
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
