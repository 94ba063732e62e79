import assert from 'node:assert/strict';
import test from 'node:test';

import { virtual } from './virtual-host.js';

const never = () => new Promise(() => {});

test('B4: a wake of a task that has ended is counted and traced, and no error', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(() => {});
    await host.settle();
    await task.result;
    rt.events();
    const { staleWakes } = rt.stats();
    rt.wake(task.id);
    rt.wake(task.id);
    assert.equal(rt.stats().staleWakes, staleWakes + 2);
    const stale = rt.events().filter(({ type }) => type === 'stale_wake');
    assert.deepEqual(stale.map(({ taskId }) => taskId), [task.id, task.id]);
    assert.equal(rt.stats().illegal, 0);
});

test('B4: the id of an ended task does not name the task that has its place now', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const first = region.spawn(() => {});
    await host.settle();
    const second = region.spawn(never);
    await host.settle();
    assert.equal(first.id >> 32n, second.id >> 32n, 'the same place');
    const { polls } = rt.stats();
    rt.wake(first.id);
    await host.settle();
    assert.equal(rt.stats().polls, polls);
});

test('B4: cancel and force of what has ended change nothing', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn(() => 7);
    await host.settle();
    task.cancel('late');
    task.force();
    await host.settle();
    assert.equal(await task.result, 7);
    assert.equal(task.witness().phase, 'Completed');
    assert.equal(task.witness().epoch, 0);
    await host.until(region.close());
    region.cancel('late');
    region.force();
    assert.deepEqual(await region.close(), await region.join());
});

test('B4: a promise that settles after its task was abandoned is a stale wake', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    let settle;
    const task = region.spawn(() => new Promise((resolve) => {
        settle = resolve;
    }));
    await host.settle();
    region.force();
    await host.settle();
    assert.equal(task.ended, true);
    const { staleWakes } = rt.stats();
    settle('too late');
    await host.settle();
    assert.ok(rt.stats().staleWakes > staleWakes);
    await assert.rejects(task.result, { name: 'AbortError' });
});

test('B4: a function that throws after its task was abandoned is heard by nobody', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    let fail;
    const task = region.spawn(() => new Promise((_, reject) => {
        fail = reject;
    }));
    await host.settle();
    region.force();
    await host.settle();
    assert.equal(task.ended, true);
    fail(new Error('too late'));
    await host.settle();
    await assert.rejects(task.result, { name: 'AbortError' });
    assert.deepEqual((await region.done).abandoned.map(({ id }) => id), [task.id]);
});

test('B4: a wait whose promise settles after the task is over wakes nobody', async (t) => {
    const { host, rt } = virtual(t);
    let settle;
    const task = rt.region().spawn((cx) => cx.wait(new Promise((resolve) => {
        settle = resolve;
    })));
    await host.settle();
    task.cancel('stop');
    await host.settle();
    assert.equal(task.ended, true);
    const { polls } = rt.stats();
    settle('late');
    await host.settle();
    assert.equal(rt.stats().polls, polls);
    await assert.rejects(task.result, { kind: 'USER' });
});

test('B4: wakes are deduplicated: a parked task that is woken ten times is polled once', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(never);
    await host.settle();
    const { polls } = rt.stats();
    for (let i = 0; i < 10; i++) rt.wake(task.id);
    await host.settle();
    assert.equal(rt.stats().polls, polls + 1);
});

test('B4: after the runtime has closed a wake is still no error', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(() => {});
    await host.settle();
    await host.until(rt.close());
    rt.wake(task.id);
    await host.settle();
    assert.equal(rt.stats().tasks, 0);
});
