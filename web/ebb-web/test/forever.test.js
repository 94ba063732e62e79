import assert from 'node:assert/strict';
import test from 'node:test';

import { virtual } from './virtual-host.js';

const never = () => new Promise(() => {});
const FOREVER = 2n ** 64n - 1n;

test('a deadline of for ever is 2^64 - 1, never -1', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn(never);
    await host.settle();
    assert.equal(task.witness().budget.deadline, FOREVER);
    assert.equal(rt.info(task.id).deadline, FOREVER);
    assert.equal(task.witness().budget.polls, 0xffffffff);
    assert.equal(rt.info(task.id).polls, 0xffffffff);
    for (const { deadline } of [region.info(), rt.root.info()]) assert.ok(deadline >= 0n, `${deadline}`);
    region.cancel({ polls: 5 });
    assert.equal(region.info().deadline, FOREVER, 'a budget of polls alone');
    rt.region().spawn(never).region.cancel({ within: 10 });
    const events = rt.events();
    const requested = events.filter(({ type }) => type === 'cancel_requested').at(-1);
    assert.equal(requested.value, 0xffffffff, 'a budget of time alone');
    assert.ok(events.every(({ other, time, value }) => other >= 0n && time >= 0n && value >= 0));
});

for (const timeout of [Infinity, Number.MAX_VALUE, 2 ** 64 / 1e6, 2 ** 64 / 1e6 - 1000, 1e13, 1e14]) {
    test(`a timeout of ${timeout} ms does not wrap around: the task and the region run on`, async (t) => {
        const { host, rt } = virtual(t);
        host.time = 12345;
        const region = rt.region({ timeout });
        const task = region.spawn((cx) => cx.sleep(50), { timeout });
        await host.pass(20);
        assert.equal(task.witness().phase, 'Running');
        assert.equal(task.witness().epoch, 0);
        await host.pass(50);
        assert.equal(await task.result, undefined);
    });

    test(`a sleep of ${timeout} ms ends with a cancel only`, async (t) => {
        const { host, rt } = virtual(t);
        const task = rt.region().spawn((cx) => cx.sleep(timeout));
        await host.pass(1e6);
        assert.equal(task.ended, false);
        task.cancel('wake up');
        await host.settle();
        await assert.rejects(task.result, { reason: 'wake up' });
        assert.equal(rt.stats().timers, 0);
    });
}

test('a budget of for ever is one: nothing is forced', async (t) => {
    const { host, rt } = virtual(t, { cleanup: { polite: { ms: Infinity } } });
    const region = rt.region();
    const [one, two] = [region.spawn((cx) => cx.mask(never)), rt.region().spawn((cx) => cx.mask(never))];
    await host.settle();
    region.cancel({ within: Infinity });
    two.cancel('please');
    await host.pass(1e7);
    for (const task of [one, two]) {
        assert.equal(rt.info(task.id).forced, false);
        assert.ok(task.witness().budget.deadline > 10n ** 15n, `${task.witness().budget.deadline}`);
    }
});

test('a timeout of 0 is over at once, at time 0 as well', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn((cx) => cx.sleep(1000), { timeout: 0 });
    await host.pass(2);
    await assert.rejects(task.result, { name: 'TimeoutError', kind: 'TIMEOUT' });
});

for (const bad of [-1, NaN, '10', null, 10n, {}]) {
    test(`a timeout of ${String(bad)} (${typeof bad}) is a TypeError, and leaves nothing`, (t) => {
        const { rt } = virtual(t);
        const region = rt.region();
        const before = [rt.stats().tasks, rt.stats().regions, rt.slots.all().length];
        const timeout = { name: 'TypeError', message: /milliseconds/ };
        assert.throws(() => region.spawn(never, { timeout: bad }), timeout);
        assert.throws(() => rt.region({ timeout: bad }), timeout);
        assert.throws(() => region.cancel({ within: bad }), timeout);
        assert.deepEqual([rt.stats().tasks, rt.stats().regions, rt.slots.all().length], before);
        assert.equal(region.info().state, 'Open');
    });
}

test('a sleep of longer than a host\'s timer takes is slept in pieces, not cut short', async (t) => {
    const { host, rt } = virtual(t);
    const days = 24 * 3600 * 1000;
    const task = rt.region().spawn((cx) => cx.sleep(60 * days));
    await host.pass(59 * days);
    assert.equal(task.ended, false);
    for (const { ms } of host.timers.values()) assert.ok(ms <= 2 ** 31 - 1, `${ms}`);
    await host.pass(2 * days);
    assert.equal(task.ended, true);
});

test('a clock that goes back does not turn time back', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn((cx) => cx.sleep(10));
    await host.pass(5);
    const now = rt.now;
    host.time = 1;
    rt.wake(task.id);
    await host.settle();
    assert.ok(rt.now >= now);
    host.time = 5;
    await host.pass(10);
    assert.equal(task.ended, true);
});
