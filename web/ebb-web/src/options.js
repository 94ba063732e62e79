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

const OF_TASKS = ['name', 'signal', 'timeout', 'polls', 'priority'];
const OF_REGIONS = ['name', 'signal', 'timeout', 'priority', 'collect', 'cleanup'];

/** An object that has only what is known: a misspelt option would be none. */
export function checkKeys(options, known, what) {
    if (options === null || typeof options !== 'object') {
        throw new TypeError(`${what}: expected an object; found ${printable(options)}`);
    }
    for (const key of Object.keys(options)) {
        if (!known.includes(key)) throw new TypeError(`${what}: unknown ${key}; expected one of ${known.join(', ')}`);
    }
    return options;
}

export function checkSignal(signal) {
    const is = typeof signal?.aborted === 'boolean' && typeof signal.addEventListener === 'function';
    if (!is) throw new TypeError(`signal: expected an AbortSignal; found ${printable(signal)}`);
    return signal;
}

export function checkTarget(target, type, what) {
    const is = typeof target?.addEventListener === 'function' && typeof type === 'string';
    if (!is) throw new TypeError(`${what}: expected an EventTarget and a type; found ${printable(target)}, ${printable(type)}`);
}

export function taskOptions(options, otherwise) {
    return common(checkKeys(options, OF_TASKS, 'options of a task'), otherwise);
}

export function regionOptions(options) {
    const { collect = false, cleanup = false } = checkKeys(options, OF_REGIONS, 'options of a region');
    return { ...common(options, 'region'), flags: (collect ? 1 : 0) | (cleanup ? 2 : 0) };
}

function common(options, otherwise) {
    const { name = otherwise, signal, timeout, polls = 0, priority = 0 } = options;
    if (typeof name !== 'string') throw new TypeError(`name: expected a string; found ${printable(name)}`);
    if (signal !== undefined) checkSignal(signal);
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
