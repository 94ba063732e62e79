/*
 * Strict deep equality as node:assert/strict has it: Object.is for primitives, the same prototype, the same
 * own enumerable properties, and the contents of boxes, dates, errors, maps, sets and buffers.
 */

/**
 * @returns {{ path: string, actual: any, expected: any } | null} the first place where they differ; null if
 *     they are deeply equal
 */
export function difference(actual, expected) {
    return compare(actual, expected, '', []);
}

/* `pairs` holds what is being compared further up: values that meet again there are equal if all else is. */
function compare(actual, expected, path, pairs) {
    if (Object.is(actual, expected))
        return null;
    const differs = { path, actual, expected };
    if (!isObject(actual) || !isObject(expected) || !sameKind(actual, expected))
        return differs;
    if (pairs.some(([a, b]) => a === actual && b === expected))
        return null;
    const inside = [...pairs, [actual, expected]];
    return sameContent(actual, expected, inside) ? members(actual, expected, path, inside) : differs;
}

function isObject(value) {
    return typeof value === 'object' && value !== null;
}

function tag(value) {
    return Object.prototype.toString.call(value);
}

function sameKind(actual, expected) {
    return Object.getPrototypeOf(actual) === Object.getPrototypeOf(expected) &&
        tag(actual) === tag(expected) && Array.isArray(actual) === Array.isArray(expected) &&
        ArrayBuffer.isView(actual) === ArrayBuffer.isView(expected);
}

const BOXES = [Number, String, Boolean, BigInt, Symbol];

/* What is not a property. */
function sameContent(actual, expected, pairs) {
    if (Array.isArray(actual))
        return actual.length === expected.length;
    if (actual instanceof Date)
        return Object.is(actual.getTime(), expected.getTime());
    if (actual instanceof RegExp)
        return String(actual) === String(expected) && actual.lastIndex === expected.lastIndex;
    if (actual instanceof Error)
        return actual.name === expected.name && actual.message === expected.message;
    if (actual instanceof Map)
        return sameMap(actual, expected, pairs);
    if (actual instanceof Set)
        return sameSet(actual, expected, pairs);
    if (isBytes(actual))
        return sameBytes(bytes(actual), bytes(expected));
    if (actual instanceof WeakMap || actual instanceof WeakSet || actual instanceof Promise)
        return false;
    if (BOXES.some((box) => actual instanceof box))
        return Object.is(actual.valueOf(), expected.valueOf());
    return true;
}

function isBytes(value) {
    return ArrayBuffer.isView(value) || value instanceof ArrayBuffer ||
        (typeof SharedArrayBuffer === 'function' && value instanceof SharedArrayBuffer);
}

function bytes(value) {
    return ArrayBuffer.isView(value) ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
        : new Uint8Array(value);
}

function sameBytes(actual, expected) {
    return actual.length === expected.length && actual.every((byte, i) => byte === expected[i]);
}

/* Order does not count. An object in a set is looked for among those that have no partner yet. */
function sameSet(actual, expected, pairs) {
    if (actual.size !== expected.size)
        return false;
    const left = [...expected].filter((value) => !actual.has(value));
    for (const value of actual)
        if (!expected.has(value) && !takeEqual(left, (other) => !compare(value, other, '', pairs)))
            return false;
    return true;
}

function sameMap(actual, expected, pairs) {
    if (actual.size !== expected.size)
        return false;
    const left = [...expected].filter(([key]) => !actual.has(key));
    for (const entry of actual) {
        const [key, value] = entry;
        const same = expected.has(key) ? !compare(value, expected.get(key), '', pairs)
            : takeEqual(left, (other) => !compare(entry, other, '', pairs));
        if (!same)
            return false;
    }
    return true;
}

function takeEqual(list, isEqual) {
    const at = list.findIndex(isEqual);
    if (at >= 0)
        list.splice(at, 1);
    return at >= 0;
}

function members(actual, expected, path, pairs) {
    const keys = enumerableKeys(actual);
    const others = enumerableKeys(expected);
    const odd = keys.find((key) => !hasOwn(expected, key)) ?? others.find((key) => !hasOwn(actual, key));
    if (odd !== undefined)
        return { path: at(path, odd), actual: actual[odd], expected: expected[odd] };
    for (const key of keys) {
        const found = compare(actual[key], expected[key], at(path, key), pairs);
        if (found)
            return found;
    }
    return null;
}

/* The elements of a typed array come first; they have been compared as bytes. */
function enumerableKeys(value) {
    const keys = Reflect.ownKeys(value).filter((key) => hasOwn(value, key));
    return isBytes(value) ? keys.slice(value.length ?? 0) : keys;
}

function hasOwn(value, key) {
    return Object.prototype.propertyIsEnumerable.call(value, key);
}

function at(path, key) {
    if (typeof key === 'symbol')
        return `${path}[${String(key)}]`;
    if (/^[A-Za-z_$][\w$]*$/.test(key))
        return `${path}.${key}`;
    return `${path}[${/^\d+$/.test(key) ? key : JSON.stringify(key)}]`;
}
