/*
 * As much of node:assert/strict as the tests need, for a page. An import map gives it that name, so the test
 * files are the same in Node and in the browser.
 */
import { difference } from './deep-equal.js';
import { inspect } from './inspect.js';

export class AssertionError extends Error {
    constructor({ message, actual, expected, operator, stackStartFn } = {}) {
        const generated = message === undefined || message === null;
        super(generated ? `${inspect(actual)} ${operator} ${inspect(expected)}` : String(message));
        this.name = 'AssertionError';
        this.code = 'ERR_ASSERTION';
        this.generatedMessage = generated;
        Object.assign(this, { actual, expected, operator });
        Error.captureStackTrace?.(this, stackStartFn);
    }
}

/* The one place that throws. `text` is for a test that gave no message of its own; `more` follows either. */
function failed(message, { text, more = '', ...details }) {
    if (message instanceof Error)
        throw message;
    const error = new AssertionError({ ...details, message: `${message ?? text}${more && `\n\n${more}\n`}` });
    error.generatedMessage = message === undefined || message === null;
    throw error;
}

function sides(actual, expected) {
    const [left, right] = [inspect(actual), inspect(expected)];
    if (left.length + right.length < 100 && !`${left}${right}`.includes('\n'))
        return `${left} !== ${right}`;
    return `actual:   ${left}\nexpected: ${right}`;
}

export function ok(value, message) {
    if (!value)
        failed(message, { actual: value, expected: true, operator: '==', stackStartFn: ok,
            text: arguments.length ? `The expression evaluated to a falsy value: ${inspect(value)}`
                : 'No value argument passed to `assert.ok()`' });
}

export function strictEqual(actual, expected, message) {
    if (!Object.is(actual, expected))
        failed(message, { actual, expected, operator: 'strictEqual', stackStartFn: strictEqual,
            text: 'Expected values to be strictly equal:', more: sides(actual, expected) });
}

export function notStrictEqual(actual, expected, message) {
    if (Object.is(actual, expected))
        failed(message, { actual, expected, operator: 'notStrictEqual', stackStartFn: notStrictEqual,
            text: `Expected "actual" to be strictly unequal to: ${inspect(expected)}` });
}

export function deepStrictEqual(actual, expected, message) {
    const found = difference(actual, expected);
    if (!found)
        return;
    const where = found.path && `\nfirst difference at ${found.path}: ${sides(found.actual, found.expected)}`;
    failed(message, { actual, expected, operator: 'deepStrictEqual', stackStartFn: deepStrictEqual,
        text: 'Expected values to be strictly deep-equal:', more: sides(actual, expected) + where });
}

export function notDeepStrictEqual(actual, expected, message) {
    if (!difference(actual, expected))
        failed(message, { actual, expected, operator: 'notDeepStrictEqual', stackStartFn: notDeepStrictEqual,
            text: `Expected "actual" not to be strictly deep-equal to: ${inspect(expected)}` });
}

export function match(string, regexp, message) {
    if (typeof string !== 'string' || !regexp.test(string))
        failed(message, { actual: string, expected: regexp, operator: 'match', stackStartFn: match,
            text: mismatch(string, regexp, 'did not match the regular expression') });
}

export function doesNotMatch(string, regexp, message) {
    if (typeof string !== 'string' || regexp.test(string))
        failed(message, { actual: string, expected: regexp, operator: 'doesNotMatch',
            stackStartFn: doesNotMatch,
            text: mismatch(string, regexp, 'was expected to not match the regular expression') });
}

function mismatch(string, regexp, verb) {
    if (typeof string !== 'string')
        return `The "string" argument must be of type string. Received ${inspect(string)}`;
    return `The input ${verb} ${regexp}. Input:\n\n${inspect(string)}\n`;
}

export function fail(message) {
    failed(message, { operator: 'fail', stackStartFn: fail, text: 'Failed' });
}

const NOTHING = Symbol('nothing was thrown');

function thrownBy(fn) {
    if (typeof fn !== 'function')
        throw invalid(`The "fn" argument must be of type function. Received ${inspect(fn)}`);
    try {
        fn();
    } catch (error) {
        return error;
    }
    return NOTHING;
}

async function rejectionOf(promiseOrFn) {
    const promise = typeof promiseOrFn === 'function' ? promiseOrFn() : promiseOrFn;
    if (typeof promise?.then !== 'function')
        throw invalid(`Expected a promise, or a function that returns one. Received ${inspect(promise)}`,
            typeof promiseOrFn === 'function' ? 'ERR_INVALID_RETURN_VALUE' : 'ERR_INVALID_ARG_TYPE');
    return promise.then(() => NOTHING, (error) => error);
}

function invalid(text, code = 'ERR_INVALID_ARG_TYPE') {
    return Object.assign(new TypeError(text), { code });
}

export function throws(fn, expected, message) {
    expectThrown(thrownBy(fn), 'throws', throws, expected, message);
}

export async function rejects(promiseOrFn, expected, message) {
    expectThrown(await rejectionOf(promiseOrFn), 'rejects', rejects, expected, message);
}

export function doesNotThrow(fn, expected, message) {
    expectNothing(thrownBy(fn), 'doesNotThrow', doesNotThrow, expected, message);
}

export async function doesNotReject(promiseOrFn, expected, message) {
    expectNothing(await rejectionOf(promiseOrFn), 'doesNotReject', doesNotReject, expected, message);
}

/* A string in the place of what is expected is the message: it says nothing of the error. */
function expectThrown(error, operator, stackStartFn, expected, message) {
    if (typeof expected === 'string')
        [expected, message] = [undefined, unambiguous(expected, error)];
    if (!['undefined', 'function', 'object'].includes(typeof expected))
        throw invalid('The "expected" argument must be a function, an object or a regular expression. ' +
            `Received ${inspect(expected)}`);
    const details = { actual: error, expected, operator, stackStartFn };
    if (error === NOTHING)
        failed(missing(operator, expected, message), { ...details, actual: undefined });
    if (expected !== undefined && expected !== null)
        checkError(error, expected, message, details);
}

/* throws(fn, 'the message of the error') looks like a check of the error, but is none. */
function unambiguous(message, error) {
    if (error === message || error?.message === message)
        throw invalid(`The "error/message" argument is ambiguous. The error message "${message}" is ` +
            'identical to the message.', 'ERR_AMBIGUOUS_ARGUMENT');
    return message;
}

function missing(operator, expected, message) {
    const kind = operator === 'rejects' ? 'rejection' : 'exception';
    const name = expected?.name ? ` (${expected.name})` : '';
    return `Missing expected ${kind}${name}${message ? `: ${message}` : '.'}`;
}

function checkError(error, expected, message, details) {
    if (expected instanceof RegExp) {
        if (!expected.test(String(error)))
            failed(message, { ...details, text: mismatch(String(error), expected,
                'did not match the regular expression') });
    } else if (typeof expected === 'object') {
        checkProperties(error, expected, message, details);
    } else if (isClass(expected)) {
        checkClass(error, expected, message, details);
    } else {
        checkByFunction(error, expected, message, details);
    }
}

function isClass(expected) {
    return typeof expected === 'function' && expected.prototype !== undefined &&
        (expected === Error || Error.isPrototypeOf(expected) || /^class\b/.test(String(expected)));
}

function checkClass(error, expected, message, details) {
    if (!(error instanceof expected))
        failed(message, { ...details, text: 'The error is expected to be an instance of ' +
            `"${expected.name}". Received ${inspect(error)}` });
}

function checkByFunction(error, expected, message, details) {
    const answer = expected.call({}, error);
    if (answer !== true)
        failed(message, { ...details, text: 'The validation function is expected to return "true". ' +
            `Received ${inspect(answer)}\n\nCaught error:\n\n${inspect(error)}` });
}

function checkProperties(error, expected, message, details) {
    const keys = Object.keys(expected);
    if (expected instanceof Error)
        keys.push('name', 'message');
    if (keys.length === 0)
        throw invalid('The "expected" argument may not be an empty object', 'ERR_INVALID_ARG_VALUE');
    for (const key of keys)
        if (!sameProperty(error?.[key], expected[key]))
            failed(message, { ...details, text: `The error's ${key} differs: ` +
                `${sides(error?.[key], expected[key])}\n\nCaught error:\n\n${inspect(error)}` });
}

function sameProperty(actual, expected) {
    if (expected instanceof RegExp && typeof actual === 'string')
        return expected.test(actual);
    return !difference(actual, expected);
}

function expectNothing(error, operator, stackStartFn, expected, message) {
    if (error === NOTHING)
        return;
    if (typeof expected === 'string')
        [expected, message] = [undefined, expected];
    if (expected !== undefined && !hasMatched(error, expected))
        throw error;
    const kind = operator === 'doesNotReject' ? 'rejection' : 'exception';
    failed(`Got unwanted ${kind}${message ? `: ${message}` : '.'}\n` +
        `Actual message: "${error?.message}"`,
    { actual: error, expected, operator, stackStartFn });
}

function hasMatched(error, expected) {
    if (expected instanceof RegExp)
        return expected.test(String(error));
    return isClass(expected) ? error instanceof expected : expected.call({}, error) === true;
}

export {
    strictEqual as equal, notStrictEqual as notEqual, deepStrictEqual as deepEqual,
    notDeepStrictEqual as notDeepEqual,
};

/** The module by itself is assert.ok with the rest on it. */
export default function assert(value, message) {
    ok(value, message);
}

Object.assign(assert, {
    AssertionError, ok, fail, match, doesNotMatch, throws, rejects, doesNotThrow, doesNotReject,
    strictEqual, notStrictEqual, deepStrictEqual, notDeepStrictEqual, equal: strictEqual,
    notEqual: notStrictEqual, deepEqual: deepStrictEqual, notDeepEqual: notDeepStrictEqual, strict: assert,
});

export { assert as strict };
