import assert from 'node:assert/strict';
import test from 'node:test';

import { counted } from './counted-listeners.js';
import { elapse, real } from './real-host.js';

const IN_NODE = globalThis.process?.versions?.node !== undefined;
const ROUNDS = 100;
const WARM = 40;
const TASKS = 1000; /* a round */
const PAGE = 65536; /* of the module's memory */

/** Collects garbage, where that can be asked for. */
async function collector() {
    if (!IN_NODE) return globalThis.gc ?? (() => {});
    const { setFlagsFromString } = await import('node:v8');
    const { runInNewContext } = await import('node:vm');
    setFlagsFromString('--expose-gc');
    return runInNewContext('gc');
}

/** Bytes of the JavaScript heap that are in use; 0 where nobody tells. */
async function heap(gc) {
    await elapse(0);
    gc();
    if (IN_NODE) return process.memoryUsage().heapUsed;
    return globalThis.gc ? performance.memory?.usedJSHeapSize ?? 0 : 0;
}

/** A round of tasks that end in every way that leaves something to clean up. */
async function round(rt, signal) {
    const region = rt.region({ collect: true, signal });
    region.done.catch(() => {});
    const target = new EventTarget();
    for (let i = 0; i < TASKS; i++) {
        const task = region.spawn(async (cx) => {
            if (i % 5 === 0) cx.defer(() => {});
            if (i % 7 === 0) cx.reserve('ack').commit();
            if (i % 11 === 0) cx.on(target, 'x', () => {});
            if (i % 3 === 0) await cx.sleep(1000);
            if (i % 13 === 0) throw new Error('fails');
        }, { signal });
        if (i % 3 === 0) task.cancel('not needed');
    }
    await region.join().catch(() => {});
}

test('100,000 spawns with a signal: no listener stays, and neither memory grows', async (t) => {
    const gc = await collector();
    const rt = real(t, { trace: 0 });
    const signal = counted(new AbortController().signal);
    const sizes = [];
    for (let i = 1; i <= ROUNDS; i++) {
        await round(rt, signal);
        assert.equal(signal.listenerCount(), 0);
        if (i === WARM || i === ROUNDS) sizes.push({ heap: await heap(gc), wasm: rt.stats().memoryBytes });
    }
    assert.ok(signal.listenersAdded() >= ROUNDS);
    assert.equal(rt.stats().spawned, ROUNDS * TASKS);
    const [warm, last] = sizes;
    assert.ok(last.wasm - warm.wasm <= PAGE, `the module's memory grew by ${last.wasm - warm.wasm} bytes`);
    assert.ok(last.heap - warm.heap < 1 << 20, `the heap grew by ${last.heap - warm.heap} bytes`);
    t.diagnostic(`heap ${warm.heap} to ${last.heap}, wasm ${warm.wasm} to ${last.wasm}`);
});

test('the slots of everything that has ended are free again', async (t) => {
    const rt = real(t, { trace: 0 });
    await round(rt, new AbortController().signal);
    assert.equal(rt.slots.all().length, 0);
});

test('a task that lives long and waits, listens and fetches often keeps nothing of it', async (t) => {
    const gc = await collector();
    const { hostOf } = await import('../index.js');
    const fetch = async () => ({ text: async () => '' });
    const rt = real(t, { trace: 0 }, { ...hostOf(globalThis), fetch });
    const target = counted(new EventTarget());
    const app = counted(new AbortController().signal);
    const sizes = [];
    const region = rt.region();
    const task = region.spawn(async (cx) => {
        for (let i = 0; i < 20000; i++) {
            const event = cx.once(target, 'go');
            target.dispatchEvent(new Event('go'));
            await event;
            await cx.wait(Promise.resolve());
            cx.on(target, 'other', () => {})();
            await cx.mask(() => {});
            cx.reserve('io').abort();
            if (i % 10 === 0) await cx.fetch('/', { signal: app });
            if (i === 4000) sizes.push(await heap(gc));
        }
        sizes.push(await heap(gc));
    });
    await task.result;
    assert.equal(target.listenerCount(), 0);
    assert.equal(app.listenerCount(), 0);
    assert.ok(app.listenersAdded() < 20,
        `${app.listenersAdded()} listeners for 2,000 fetches with one signal`);
    assert.ok(sizes[1] - sizes[0] < 1 << 20, `the heap grew by ${sizes[1] - sizes[0]} bytes`);
    await region.close();
    assert.equal(rt.slots.all().length, 0);
});

test('fetches with a signal each do not add up once those have aborted, as timeouts do', async (t) => {
    const { hostOf } = await import('../index.js');
    const fetch = async () => ({});
    const rt = real(t, { trace: 0 }, { ...hostOf(globalThis), fetch });
    const task = rt.region().spawn(async (cx) => {
        const own = counted(cx.signal);
        for (let i = 0; i < 500; i++) {
            const controller = new AbortController();
            await cx.fetch('/', { signal: controller.signal });
            controller.abort();
        }
        return own.listenerCount();
    });
    assert.ok(await task.result <= 2, `${await task.result} listeners on cx.signal`);
});
