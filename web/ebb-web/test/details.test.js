/* What planted mistakes have shown that no other test looks at (web/mutate). */
import assert from 'node:assert/strict';
import test from 'node:test';

import { counted } from './counted-listeners.js';
import { virtual } from './virtual-host.js';

const never = () => new Promise(() => {});

test('tasks with deadlines run in the order of these, whatever order they were spawned in', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const order = [];
    const deadlines = Array.from({ length: 41 }, (_, i) => 1000 + (i * 17) % 41);
    for (const timeout of deadlines) region.spawn(() => void order.push(timeout), { timeout });
    await host.settle();
    assert.deepEqual(order, [...deadlines].sort((a, b) => a - b));
});

test('the order of deadlines holds when some of those that wait have gone', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region({ collect: true });
    const order = [];
    const tasks = Array.from({ length: 41 }, (_, i) => {
        const timeout = 1000 + (i * 23) % 41;
        return region.spawn(() => void order.push(timeout), { timeout });
    });
    tasks.filter((_, i) => i % 3 === 0).forEach((task) => task.cancel());
    await host.settle();
    const ran = order.filter((timeout) => tasks.some((_, i) => i % 3 !== 0 && 1000 + (i * 23) % 41 === timeout));
    assert.equal(ran.length, 27);
    assert.deepEqual(ran, [...ran].sort((a, b) => a - b));
});

test('a finalizer may mask and unmask: the mask that it has from the kernel stays', async (t) => {
    const { host, rt } = virtual(t);
    const depths = [];
    const depth = (cx) => depths.push(rt.info(cx.task.id).mask);
    const task = rt.region().spawn((cx) => {
        cx.defer(async () => {
            depth(cx);
            await cx.mask(() => depth(cx));
            depth(cx);
        });
    });
    await host.settle();
    await task.result;
    assert.deepEqual(depths, [1, 2, 1]);
});

test('the listener of a fetch that failed is gone at once, not when the task settles', async (t) => {
    const signal = counted(new AbortController().signal);
    const fetch = () => Promise.reject(new TypeError('network'));
    const { host, rt } = virtual(t, { capabilities: { fetch } });
    const task = rt.region().spawn(async (cx) => {
        await cx.fetch('/', { signal }).catch(() => {});
        await cx.wait(never());
    });
    await host.settle();
    assert.equal(task.ended, false);
    assert.equal(signal.listenersAdded(), 1);
    assert.equal(signal.listenerCount(), 0);
});

test('a task whose time was over before its first poll was never asked to stop: epoch 0', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(() => {}, { timeout: 5 });
    host.time = 10;
    await host.settle();
    const { epoch, severity, reason } = await task.result.catch((error) => error);
    assert.deepEqual([epoch, severity, reason], [0, 'urgent', 'its time was over before its first poll']);
});

test('a cleanup region fails fast, as any other that does not collect', async (t) => {
    const { host, rt } = virtual(t);
    let kind;
    const task = rt.region().spawn(async (cx) => {
        try {
            await cx.wait(never());
        } finally {
            const scope = cx.region({ cleanup: true });
            scope.spawn(() => Promise.reject(new Error('first')));
            const other = scope.spawn((inner) => inner.sleep(1000));
            kind = await other.result.catch((error) => error.kind);
            await scope.join().catch(() => {});
        }
    });
    await host.settle();
    task.cancel();
    await host.finish();
    assert.equal(kind, 'SIBLING_FAILED');
});

test('closing a region wakes what waits in it, so that it can see that', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn((cx) => cx.sleep(1000));
    await host.settle();
    rt.events();
    region.close();
    const woken = rt.events().filter(({ type }) => type === 'task_woken');
    assert.deepEqual(woken.map(({ taskId }) => taskId), [task.id]);
});

test('a turn has 4096 polls; what is left comes with the next message', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    for (let i = 0; i < 6000; i++) region.spawn(() => {});
    await host.runMicrotasks();
    assert.equal(rt.stats().polls, 4096);
    await host.settle();
    assert.equal(rt.stats().ended, 6000);
});

test('a cancel reaches every task, after others have ended in any order and their places were used again', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const gates = [];
    const spawn = () => {
        let open;
        const gate = new Promise((resolve) => (open = resolve));
        gates.push(open);
        return region.spawn((cx) => cx.wait(gate));
    };
    const end = async (i) => {
        gates[i]();
        await host.settle();
    };
    spawn();
    spawn();
    await host.settle();
    await end(0);
    spawn(); /* in the place of the first */
    await host.settle();
    await end(1); /* moves it to the front */
    const last = spawn();
    await host.settle();
    await end(2);
    region.cancel('all of you');
    await host.settle();
    assert.equal(last.ended, true);
    assert.equal(region.ended, true);
});
