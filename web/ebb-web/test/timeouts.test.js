import assert from 'node:assert/strict';
import test from 'node:test';

import { Cancelled, hostOf, Runtime } from '../index.js';
import { real } from './real-host.js';
import { virtual } from './virtual-host.js';

const never = () => new Promise(() => {});

test('a task that takes too long is cancelled with TIMEOUT, and has its budget to clean up', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const task = rt.region().spawn(async (cx) => {
        try {
            await cx.sleep(1000);
        } finally {
            await cx.mask(() => cx.sleep(100));
            log.push(host.time);
        }
    }, { timeout: 50 });
    await host.pass(49);
    assert.equal(task.witness().epoch, 0);
    await host.pass(150);
    await assert.rejects(task.result, { name: 'TimeoutError', kind: 'TIMEOUT', severity: 'urgent' });
    assert.ok(log[0] >= 150 && log[0] <= 153, `${log}`);
});

test('a task that is in time is left alone', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn((cx) => cx.sleep(40), { timeout: 50 });
    await host.finish();
    assert.equal(await task.result, undefined);
    assert.equal(host.timers.size, 0);
});

test('a deadline that passes before the first poll ends the task uncalled, as TIMEOUT', async (t) => {
    const { host, rt } = virtual(t);
    let called = false;
    const task = rt.region().spawn(() => {
        called = true;
    }, { timeout: 5 });
    host.time = 10; /* the page was busy */
    await host.settle();
    assert.equal(called, false);
    const error = await task.result.catch((e) => e);
    assert.ok(error instanceof Cancelled);
    assert.equal(error.kind, 'TIMEOUT');
    assert.equal(task.witness().phase, 'Completed');
});

test('a task that uses up its polls is cancelled with BUDGET', async (t) => {
    const { host, rt } = virtual(t);
    let rounds = 0;
    const task = rt.region().spawn(async (cx) => {
        for (;;) {
            rounds++;
            await cx.yield();
        }
    }, { polls: 10 });
    await host.settle();
    await assert.rejects(task.result, { name: 'AbortError', kind: 'BUDGET' });
    assert.ok(rounds >= 9 && rounds <= 12, `${rounds} rounds`);
});

test('the table of cleanup budgets is the host\'s, and the defaults are those of the contract', async (t) => {
    const budgets = async (options) => {
        const { host, rt } = virtual(t, options);
        const seen = [];
        for (const kind of ['USER', 'TIMEOUT', 'SHUTDOWN']) {
            const task = rt.region().spawn(never);
            await host.settle();
            task.cancel({ kind });
            const { deadline, polls } = task.witness().budget;
            seen.push(`${Math.round(Number(deadline) / 1e6)} ms ${polls}`);
        }
        return seen;
    };
    assert.deepEqual(await budgets({}), ['5000 ms 1024', '2000 ms 256', '500 ms 64']);
    const cleanup = { polite: { ms: 700, polls: 70 }, urgent: { ms: 300 }, forced: { polls: 9 } };
    assert.deepEqual(await budgets({ cleanup }), ['700 ms 70', '300 ms 256', '500 ms 9']);
});

test('bad options are TypeErrors that say what is expected, and leave nothing behind', async (t) => {
    const { rt } = virtual(t);
    const region = rt.region();
    const before = rt.slots.all().length;
    for (const options of [
        { polls: -1 }, { polls: 1.5 }, { polls: 2 ** 32 }, { polls: 5n }, { polls: '5' }, { priority: 256 },
        { priority: -1 }, { priority: 'high' }, { name: 5 }, { name: Symbol('n') }, { timeout: -5 }, null, 5,
        'options',
    ]) {
        assert.throws(() => region.spawn(never, options), TypeError, String(options && Object.keys(options)));
    }
    for (const options of [{ priority: 256 }, { name: 5 }, { timeout: NaN }, null, 7]) {
        assert.throws(() => rt.region(options), TypeError);
    }
    for (const reason of [{ within: -1 }, { polls: -1 }, { polls: 2 ** 33 }]) {
        assert.throws(() => region.cancel(reason), TypeError);
    }
    const task = region.spawn(never);
    assert.throws(() => task.cancel({ within: 5 }), TypeError, 'a budget of its own is for regions');
    assert.equal(rt.slots.all().length, before + 1);
    assert.deepEqual([rt.stats().tasks, rt.stats().regions, region.info().state], [1, 2, 'Open']);
});

test('bad options of a runtime are refused', () => {
    const host = hostOf(globalThis);
    for (const options of [
        { cleanup: { polite: { ms: -1 } } }, { cleanup: { polite: { ms: NaN } } },
        { cleanup: { forced: { polls: -1 } } },
        { trace: -1 }, { trace: 'much' }, { journal: 2 ** 40 }, { journal: 1.5 },
    ]) assert.throws(() => new Runtime(host, options), Error, JSON.stringify(options));
});

test('on the real clock a sleep takes its time and a timeout comes', async (t) => {
    const rt = real(t);
    const began = performance.now();
    const region = rt.region();
    await region.spawn((cx) => cx.sleep(20)).result;
    const slept = performance.now() - began;
    assert.ok(slept >= 19.5, `${slept} ms`);
    await assert.rejects(region.spawn((cx) => cx.sleep(60000), { timeout: 10 }).result, { kind: 'TIMEOUT' });
    await region.close();
});

test('the deadline of a region comes even if nothing lives in it', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region({ timeout: 20 });
    await host.pass(25);
    assert.equal(region.ended, true);
    const rested = rt.region({ timeout: 20 });
    rested.spawn(never);
    await host.pass(10);
    assert.equal(host.timers.size, 1);
});

test('what others compute in a batch is not added to a sleep, nor to a timeout', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    let woke;
    region.spawn(async (cx) => {
        await cx.sleep(50);
        woke = host.time;
    });
    const late = region.spawn((cx) => cx.sleep(1000), { timeout: 50 });
    region.spawn(() => {
        host.time += 40;
    });
    await host.finish();
    assert.ok(woke >= 50 && woke <= 52, `it woke at ${woke}`);
    assert.equal(late.witness().kind, 'TIMEOUT');
});
