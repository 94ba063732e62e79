/*
 * Calls of assert, [name, fn(assert)], with the same outcome in node:assert/strict and in the page's own.
 */

const boom = () => { throw new TypeError('boom'); };
const calm = () => 1;
const cycle = (value) => {
    const object = { value };
    object.self = object;
    return object;
};
const nested = (depth, value) => (depth ? { inner: nested(depth - 1, value) } : value);
const bytes = (...all) => new Uint8Array(all);
class Point {
    constructor(x) {
        this.x = x;
    }
}
const withSymbol = (value) => ({ [Symbol.for('s')]: value });
const hidden = (value) => Object.defineProperty({}, 'x', { value });
const holes = new Array(1);

/** Pairs for equal, notEqual, deepEqual and notDeepEqual. */
const PAIRS = [
    ['numbers', 1, 1], ['other numbers', 1, 2], ['NaN', NaN, NaN], ['zeros', 0, -0], ['minus zeros', -0, -0],
    ['number and string', 1, '1'], ['null and undefined', null, undefined], ['booleans', true, 1],
    ['strings', 'a', 'a'], ['other strings', 'a\nb', 'a\nc'],
    ['long strings', 'x'.repeat(200), 'y'.repeat(200)],
    ['bigints', 1n, 1n], ['other bigints', 1n, 2n], ['bigint and number', 1n, 1],
    ['large bigints', 2n ** 64n - 1n, 18446744073709551615n],
    ['symbols', Symbol.for('a'), Symbol.for('a')], ['own symbols', Symbol('a'), Symbol('a')],
    ['functions', boom, boom], ['other functions', () => 1, () => 1],
    ['objects', { a: 1, b: { c: [2] } }, { b: { c: [2] }, a: 1 }],
    ['deep change', { a: { b: [1, { c: 2 }] } }, { a: { b: [1, { c: 3 }] } }],
    ['missing property', { a: 1 }, { a: 1, b: undefined }], ['more properties', { a: 1, b: 2 }, { a: 1 }],
    ['NaN inside', { a: [NaN] }, { a: [NaN] }], ['zeros inside', [0], [-0]], ['types inside', [1], ['1']],
    ['arrays', [1, 2, 3], [1, 2, 3]], ['array order', [1, 2], [2, 1]], ['array lengths', [1], [1, 2]],
    ['holes', holes, [undefined]], ['array and object', [], {}],
    ['array properties', Object.assign([1], { x: 1 }), [1]],
    ['array-like', [1], { 0: 1, length: 1 }],
    ['null prototype', Object.create(null), {}], ['classes', new Point(1), new Point(1)],
    ['class changes', new Point(1), new Point(2)], ['class and object', new Point(1), { x: 1 }],
    ['symbol keys', withSymbol(1), withSymbol(1)], ['other symbol keys', withSymbol(1), withSymbol(2)],
    ['lacking symbol keys', withSymbol(1), {}], ['hidden properties', hidden(1), hidden(2)],
    ['dates', new Date(5), new Date(5)], ['other dates', new Date(5), new Date(6)],
    ['date and number', new Date(5), 5],
    ['regexps', /a/g, /a/g], ['flags', /a/g, /a/i],
    ['errors', new Error('a'), new Error('a')], ['messages', new Error('a'), new Error('b')],
    ['error classes', new Error('a'), new TypeError('a')],
    ['error names', Object.assign(new Error('a'), { name: 'X' }), new Error('a')],
    ['error codes', Object.assign(new Error('a'), { code: 1 }), Object.assign(new Error('a'), { code: 2 })],
    ['boxes', Object(1), Object(1)], ['other boxes', Object('a'), Object('b')],
    ['box and value', Object(1), 1],
    ['maps', new Map([[1, { a: 1 }], ['k', 2]]), new Map([['k', 2], [1, { a: 1 }]])],
    ['map values', new Map([[1, 2]]), new Map([[1, 3]])], ['map keys', new Map([[1, 2]]), new Map([[2, 2]])],
    ['map of undefined', new Map([[1, undefined]]), new Map([[2, undefined]])],
    ['object keys', new Map([[{ a: 1 }, 1], [{ a: 2 }, 2]]), new Map([[{ a: 2 }, 2], [{ a: 1 }, 1]])],
    ['other object keys', new Map([[{ a: 1 }, 1], [{ a: 2 }, 2]]), new Map([[{ a: 2 }, 1], [{ a: 1 }, 2]])],
    ['sets', new Set([1, 2, 'a']), new Set(['a', 2, 1])], ['set members', new Set([1, 2]), new Set([1, 3])],
    ['sets of objects', new Set([{ a: 1 }, { a: 2 }]), new Set([{ a: 2 }, { a: 1 }])],
    ['the same twice', new Set([{ a: 1 }, { a: 1 }]), new Set([{ a: 1 }, { a: 2 }])],
    ['sets with NaN', new Set([NaN, 0]), new Set([0, NaN])], ['set types', new Set([1]), new Set(['1'])],
    ['set sizes', new Set([1]), new Set([1, 2])], ['set and map', new Set(), new Map()],
    ['map properties', Object.assign(new Map(), { x: 1 }), new Map()],
    ['bytes', bytes(1, 2), bytes(1, 2)], ['other bytes', bytes(1, 2), bytes(1, 3)],
    ['fewer bytes', bytes(1), bytes(1, 2)], ['views at an offset', bytes(9, 1, 2).subarray(1), bytes(1, 2)],
    ['array types', bytes(1), new Int8Array([1])], ['array and bytes', [1], bytes(1)],
    ['float NaN', new Float64Array([NaN]), new Float64Array([NaN])],
    ['float zeros', new Float32Array([0]), new Float32Array([-0])],
    ['bigint arrays', new BigUint64Array([2n]), new BigUint64Array([2n])],
    ['other bigint arrays', new BigInt64Array([2n]), new BigInt64Array([3n])],
    ['properties of bytes', Object.assign(bytes(1), { x: 1 }), bytes(1)],
    ['buffers', bytes(1, 2).buffer, bytes(1, 2).buffer], ['other buffers', bytes(1).buffer, bytes(2).buffer],
    ['data views', new DataView(bytes(1, 2).buffer), new DataView(bytes(1, 2).buffer)],
    ['other data views', new DataView(bytes(1, 2).buffer), new DataView(bytes(1, 3).buffer)],
    ['cycles', cycle(1), cycle(1)], ['other cycles', cycle(1), cycle(2)],
    ['far down', nested(100, 1), nested(100, 1)], ['a change far down', nested(100, 1), nested(100, 2)],
    ['cycle and end', cycle(1), { value: 1, self: null }],
];

const COMPARING = ['equal', 'notEqual', 'strictEqual', 'deepEqual', 'notDeepEqual', 'deepStrictEqual'];
const compared = COMPARING.flatMap((method) => PAIRS.map(([name, actual, expected]) =>
    [`${method}: ${name}`, (assert) => assert[method](actual, expected)]));

const EXPECTED = [
    ['nothing'], ['its class', TypeError], ['a class above', Error], ['another class', RangeError],
    ['another class, message', RangeError, 'mine'], ['a match', /boom/],
    ['a match of the name', /^TypeError: boom$/],
    ['no match', /bang/], ['no match, message', /bang/, 'mine'], ['a function', () => true],
    ['a function that says no', () => false], ['a function that says 1', () => 1],
    ['a function that throws', () => { throw new RangeError('inner'); }],
    ['properties', { message: 'boom', name: 'TypeError' }], ['a regexp in properties', { message: /oo/ }],
    ['other properties', { message: 'bang' }], ['lacking properties', { code: 'X' }], ['no properties', {}],
    ['an error', new TypeError('boom')], ['an error of another class', new Error('boom')],
    ['an error of another message', new TypeError('bang')], ['a message', 'mine'],
    ['its own message', 'boom'],
    ['null', null], ['a number', 5],
];
const throwing = EXPECTED.flatMap(([name, ...args]) => [
    [`throws: ${name}`, (assert) => assert.throws(boom, ...args)],
    [`throws not: ${name}`, (assert) => assert.throws(calm, ...args)],
    [`rejects: ${name}`, (assert) => assert.rejects(async () => boom(), ...args)],
    [`rejects not: ${name}`, (assert) => assert.rejects(async () => calm(), ...args)],
]);

const THENABLE = { then: (resolve, reject) => reject(new Error('x')), catch() {} };
const DETAILS = { actual: 1, expected: 2, operator: 'strictEqual', message: 'mine' };
const others = [
    ['assert', (assert) => assert(1)], ['assert 0', (assert) => assert(0)],
    ['assert 0, message', (assert) => assert(0, 'mine')],
    ['ok', (assert) => assert.ok('a')], ['ok of an empty string', (assert) => assert.ok('')],
    ['ok of nothing', (assert) => assert.ok()],
    ['ok, error', (assert) => assert.ok(0, new RangeError('mine'))],
    ['equal, message', (assert) => assert.equal(1, 2, 'mine')],
    ['equal, error', (assert) => assert.equal(1, 2, new RangeError('mine'))],
    ['deepEqual, message', (assert) => assert.deepEqual([1], [2], 'mine')],
    ['fail', (assert) => assert.fail()], ['fail, message', (assert) => assert.fail('mine')],
    ['fail, error', (assert) => assert.fail(new RangeError('mine'))],
    ['match', (assert) => assert.match('abc', /b/)], ['match not', (assert) => assert.match('abc', /x/)],
    ['match, message', (assert) => assert.match('abc', /x/, 'mine')],
    ['match of a number', (assert) => assert.match(5, /5/)],
    ['doesNotMatch', (assert) => assert.doesNotMatch('abc', /x/)],
    ['doesNotMatch not', (assert) => assert.doesNotMatch('abc', /b/)],
    ['doesNotMatch of a number', (assert) => assert.doesNotMatch(5, /x/)],
    ['throws of no function', (assert) => assert.throws(5)],
    ['throws of a string', (assert) => assert.throws(() => { throw 'x'; }, /x/)],
    ['throws of undefined', (assert) => assert.throws(() => { throw undefined; })],
    ['throws properties of a string', (assert) => assert.throws(() => { throw 'x'; }, { message: 'x' })],
    ['doesNotThrow', (assert) => assert.doesNotThrow(calm)],
    ['doesNotThrow not', (assert) => assert.doesNotThrow(boom)],
    ['doesNotThrow, message', (assert) => assert.doesNotThrow(boom, 'mine')],
    ['doesNotThrow this class', (assert) => assert.doesNotThrow(boom, TypeError)],
    ['doesNotThrow another class', (assert) => assert.doesNotThrow(boom, RangeError)],
    ['doesNotReject', (assert) => assert.doesNotReject(async () => 1)],
    ['doesNotReject not', (assert) => assert.doesNotReject(async () => boom())],
    ['rejects of a promise', (assert) => assert.rejects(Promise.reject(new Error('x')), /x/)],
    ['rejects of a number', (assert) => assert.rejects(5)],
    ['rejects of () => number', (assert) => assert.rejects(() => 5)],
    ['rejects of a throw', (assert) => assert.rejects(boom)],
    ['rejects of a thenable', (assert) => assert.rejects(THENABLE)],
    ['AssertionError', (assert) => { throw new assert.AssertionError(DETAILS); }],
    ['strict', (assert) => assert.strict.equal(1, '1')],
];

const CASES = [...compared, ...throwing, ...others];

/* A text that was made up, and that of a wrong argument, may be another, but there has to be one. Below a
 * text that was given, newer versions of Node show both sides. */
function outcome(error) {
    const { name, code, operator, generatedMessage } = error;
    const sides = ['actual', 'expected'].map((side) => typeof error[side]);
    const isGiven = !generatedMessage && (code === undefined || code === 'ERR_ASSERTION');
    return { name, code, operator, generatedMessage, sides,
        message: isGiven ? error.message.split('\n')[0] : error.message.length > 0,
        isError: error instanceof Error };
}

async function run(assert, [name, fn]) {
    try {
        await fn(assert);
        return [name, 'passes'];
    } catch (error) {
        return [name, outcome(error)];
    }
}

/** @returns {Promise<[string, any][]>} what JSON can carry */
export async function outcomes(assert) {
    const all = [];
    for (const each of CASES)
        all.push(await run(assert, each));
    return JSON.parse(JSON.stringify(all));
}
