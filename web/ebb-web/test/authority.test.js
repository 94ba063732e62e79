import assert from 'node:assert/strict';
import test from 'node:test';

import { hostOf, Runtime } from '../index.js';
import { virtual, VirtualHost } from './virtual-host.js';

const NEEDED = ['queueMicrotask', 'MessageChannel', 'setTimeout', 'now'];

/** The language, and what only computes: nothing of it reaches the clock, the loop or the network. */
const PURE = new Set([
    'AbortController', 'AbortSignal', 'Event', 'EventTarget', 'DOMException', 'TextEncoder', 'TextDecoder',
    'WebAssembly', 'globalThis', 'atob', 'structuredClone', 'console', 'process', 'global', 'window',
    'self', 'frames', 'parent', 'top', 'document', 'Object', 'Function', 'Array', 'Number', 'Boolean',
    'String', 'Symbol', 'Promise', 'RegExp', 'Error', 'AggregateError', 'EvalError', 'RangeError',
    'ReferenceError', 'SyntaxError', 'TypeError', 'URIError', 'JSON', 'Math', 'Intl', 'ArrayBuffer',
    'SharedArrayBuffer', 'DataView', 'Map', 'Set', 'WeakMap', 'WeakSet', 'WeakRef', 'FinalizationRegistry',
    'Proxy', 'Reflect', 'BigInt', 'Infinity', 'NaN', 'undefined', 'parseInt', 'parseFloat', 'isNaN',
    'isFinite', 'Iterator', 'Atomics', 'eval', 'decodeURI', 'decodeURIComponent', 'encodeURI',
    'encodeURIComponent', 'escape', 'unescape',
    ...['Int8', 'Uint8', 'Uint8Clamped', 'Int16', 'Uint16', 'Int32', 'Uint32', 'Float16', 'Float32',
        'Float64', 'BigInt64', 'BigUint64'].map((name) => `${name}Array`),
]);

/** Every global but those throws when it is touched, until the returned function is called. */
function poison() {
    const saved = [];
    const names = new Set([
        ...Object.getOwnPropertyNames(globalThis), 'setTimeout', 'setInterval', 'setImmediate',
        'clearTimeout', 'queueMicrotask', 'MessageChannel', 'postMessage', 'fetch', 'performance', 'Date',
        'crypto', 'addEventListener', 'requestAnimationFrame', 'requestIdleCallback', 'scheduler',
    ]);
    for (const name of names) {
        const before = Object.getOwnPropertyDescriptor(globalThis, name);
        if (PURE.has(name) || before?.configurable === false) continue;
        saved.push([name, before]);
        Object.defineProperty(globalThis, name, {
            configurable: true,
            get: () => {
                throw new Error(`the global ${name} was used`);
            },
        });
    }
    return () => {
        for (const [name, before] of saved) {
            delete globalThis[name];
            if (before !== undefined) Object.defineProperty(globalThis, name, before);
        }
        return saved.map(([name]) => name);
    };
}

/** Uses everything that a task can use. */
async function everything(host, rt) {
    const log = [];
    const controller = new AbortController();
    const region = rt.region({ name: 'all of it', timeout: 10000 });
    region.spawn(async (cx) => {
        cx.defer(() => log.push('finalized'));
        await cx.sleep(5);
        await cx.yield();
        log.push(await (await cx.fetch('https://example.org/')).text());
        await cx.mask(() => cx.wait(Promise.resolve()));
        cx.reserve('ack').commit();
        log.push(await cx.region().race([(c) => c.sleep(50), () => 'first']));
        await cx.once(new EventTarget(), 'never');
    }, { signal: controller.signal, timeout: 1000, name: 'everything' });
    await host.pass(100);
    controller.abort();
    await host.finish();
    const report = await host.until(region.join());
    log.push(report.status, rt.stats().tasks, rt.dump().length > 0, rt.events().length > 0);
    await host.until(rt.close());
    return log;
}

test('INV-6: with every global poisoned a whole scenario runs on what was passed in', async (t) => {
    const host = new VirtualHost();
    const fetched = [];
    host.capabilities.fetch = async (input, init) => {
        fetched.push([input, init.signal instanceof AbortSignal]);
        return { text: async () => 'body' };
    };
    const restore = poison();
    let log;
    try {
        const rt = new Runtime(host.capabilities, { trace: 1 << 20, journal: 1 << 20 });
        log = await everything(host, rt);
    } finally {
        const poisoned = restore();
        for (const name of ['setTimeout', 'queueMicrotask', 'MessageChannel', 'fetch', 'performance']) {
            assert.ok(poisoned.includes(name), `${name} was poisoned`);
        }
    }
    assert.deepEqual(log, ['body', 'first', 'finalized', 'cancelled', 0, true, true]);
    assert.deepEqual(fetched, [['https://example.org/', true]]);
    for (const name of ['queueMicrotask', 'MessageChannel', 'setTimeout', 'clearTimeout', 'now']) {
        assert.ok(host.counts[name] > 0, `${name} was used`);
    }
});

for (const missing of NEEDED) {
    test(`INV-6: a runtime without ${missing} is an error that names it`, () => {
        const { [missing]: _, ...rest } = new VirtualHost().capabilities;
        const message = new RegExp(`\\b${missing}\\b`);
        const refusal = { name: 'EbbError', code: 'EBB_ERR_CAPABILITY', message };
        assert.throws(() => new Runtime(rest), refusal);
        assert.throws(() => new Runtime({ ...rest, [missing]: 'no function' }), refusal);
        assert.throws(() => new Runtime({ ...rest, [missing]: null }), refusal);
    });
}

for (const host of [undefined, null, 5, 'globalThis']) {
    test(`INV-6: a host that is ${host} is an error that says what is expected`, () => {
        const message = /queueMicrotask.*MessageChannel.*setTimeout.*now/;
        assert.throws(() => new Runtime(host), { name: 'TypeError', message });
    });
}

test('INV-6: cx.fetch without a fetch is an error that names it, and nothing is fetched', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    region.done.catch(() => {});
    const task = region.spawn((cx) => cx.fetch('https://example.org/'));
    await host.settle();
    await assert.rejects(task.result, { name: 'EbbError', code: 'EBB_ERR_CAPABILITY', message: /\bfetch\b/ });
});

test('INV-6: a fetch that is no function is refused by name too', async (t) => {
    const host = new VirtualHost();
    const rt = new Runtime({ ...host.capabilities, fetch: 'https://example.org/' });
    const task = rt.region({ collect: true }).spawn((cx) => cx.fetch('/'));
    const refused = assert.rejects(task.result, { code: 'EBB_ERR_CAPABILITY', message: /\bfetch\b/ });
    await host.settle();
    await refused;
});

test('INV-6: without clearTimeout timers that are not needed any more come and do nothing', async () => {
    const host = new VirtualHost();
    const { clearTimeout: _, ...rest } = host.capabilities;
    const rt = new Runtime(rest);
    const region = rt.region();
    const task = region.spawn((cx) => cx.sleep(1000));
    await host.settle();
    task.cancel('stop');
    await host.settle();
    assert.equal(task.ended, true);
    assert.ok(host.timers.size > 0, 'nobody could take it back');
    region.spawn((cx) => cx.sleep(2000));
    await host.settle();
    const [{ polls }, { setTimeout, queueMicrotask }] = [rt.stats(), { ...host.counts }];
    await host.pass(1500);
    assert.equal(rt.stats().polls, polls);
    assert.deepEqual([host.counts.setTimeout, host.counts.queueMicrotask], [setTimeout, queueMicrotask]);
    await host.until(rt.close());
});

test('INV-6: no fallback: a microtask queue that does nothing is not replaced', async () => {
    const host = new VirtualHost();
    let asked = 0;
    const rt = new Runtime({ ...host.capabilities, queueMicrotask: () => asked++ });
    let ran = false;
    rt.region().spawn(() => {
        ran = true;
    });
    await host.pass(1000);
    assert.equal(asked, 1);
    assert.equal(ran, false);
    assert.deepEqual([host.counts.postMessage, host.counts.setTimeout], [0, 0]);
});

test('INV-6: no fallback: messages that never come are not replaced', async () => {
    const host = new VirtualHost();
    const rt = new Runtime(host.capabilities);
    let rounds = 0;
    rt.region().spawn(async (cx) => {
        for (;;) {
            host.time += 1;
            rounds++;
            await cx.yield();
        }
    });
    await host.runMicrotasks();
    const { queueMicrotask, setTimeout } = host.counts;
    const before = rounds;
    host.time += 1000;
    for (let i = 0; i < 5; i++) await host.runMicrotasks();
    assert.equal(rounds, before);
    assert.deepEqual([host.counts.queueMicrotask, host.counts.setTimeout], [queueMicrotask, setTimeout]);
    assert.equal(host.messages.length, 1, 'it waits for its message');
    await host.step();
    assert.ok(rounds > before);
});

test('INV-6: what is passed in is called without a `this`, as the platform needs it', async (t) => {
    const { queueMicrotask, MessageChannel, setTimeout, clearTimeout, performance } = globalThis;
    const now = () => performance.now();
    const rt = new Runtime({ queueMicrotask, MessageChannel, setTimeout, clearTimeout, now });
    const task = rt.region().spawn(async (cx) => {
        await cx.sleep(1);
        return 'slept';
    });
    assert.equal(await task.result, 'slept');
    await rt.close();
});

test('INV-6: hostOf takes what a global object has, bound to it, and nothing else', () => {
    const calls = [];
    const global = {
        queueMicrotask() { calls.push(['queueMicrotask', this === global]); },
        setTimeout() { calls.push(['setTimeout', this === global]); },
        performance: { now: () => 42 },
        MessageChannel: class {},
    };
    const host = hostOf(global);
    host.queueMicrotask();
    host.setTimeout();
    assert.deepEqual(calls, [['queueMicrotask', true], ['setTimeout', true]]);
    assert.equal(host.now(), 42);
    assert.equal(host.fetch, undefined);
    assert.equal(host.MessageChannel, global.MessageChannel);
});
