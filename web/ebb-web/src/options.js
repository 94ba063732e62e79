/** What callers pass in, checked before anything is done with it. */

export const FOREVER = 2n ** 64n - 1n;

/** Milliseconds as nanoseconds; what is too long to count is for ever. */
export function nanoseconds(ms, what) {
    if (typeof ms !== 'number' || !(ms >= 0)) {
        throw new TypeError(`${what}: expected milliseconds, 0 or more; found ${printable(ms)}`);
    }
    return ms >= 1e13 ? FOREVER : BigInt(Math.ceil(ms * 1e6));
}

/** A whole number from 0 to `most`. */
export function integer(value, most, what) {
    if (Number.isInteger(value) && value >= 0 && value <= most) return value;
    throw new TypeError(`${what}: expected a whole number from 0 to ${most}; found ${printable(value)}`);
}

/** Those of a task or a region. */
export function checkOptions(options, otherwise) {
    if (options === null || typeof options !== 'object') {
        throw new TypeError(`expected an object of options; found ${printable(options)}`);
    }
    const { name = otherwise, signal, timeout, polls = 0, priority = 0 } = options;
    if (typeof name !== 'string') throw new TypeError(`name: expected a string; found ${printable(name)}`);
    if (signal !== undefined && (typeof signal?.aborted !== 'boolean' || typeof signal.addEventListener !== 'function')) {
        throw new TypeError(`signal: expected an AbortSignal; found ${printable(signal)}`);
    }
    return {
        name,
        signal,
        timeout: timeout === undefined ? undefined : nanoseconds(timeout, 'timeout'),
        polls: integer(polls, 0xfffffffe, 'polls'),
        priority: integer(priority, 255, 'priority'),
    };
}

export function checkFunction(fn, what) {
    if (typeof fn !== 'function') throw new TypeError(`${what}: expected a function, found ${printable(fn)}`);
}

/** Text of anything at all: there are values that can't be made one. */
export function printable(value) {
    try {
        return typeof value === 'bigint' ? `${value}n` : String(value);
    } catch {
        return `something that has no text (${typeof value})`;
    }
}
