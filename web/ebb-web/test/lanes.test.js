import assert from 'node:assert/strict';
import test from 'node:test';

import { virtual } from './virtual-host.js';

const never = () => new Promise(() => {});
const LANES = { cancel: 1, timed: 2, ready: 3 }; /* the value of task_woken and task_polled */

function lanesOf(events, type, id) {
    return events.filter((e) => e.type === type && e.taskId === id).map(({ value }) => value);
}

test('B5: a task that is not cancelled is woken into the ready lane', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(never);
    assert.equal(rt.info(task.id).lane, 'ready');
    await host.settle();
    assert.equal(rt.info(task.id).lane, 'none', 'parked');
    rt.events();
    rt.wake(task.id);
    assert.equal(rt.info(task.id).lane, 'ready');
    await host.settle();
    const events = rt.events();
    assert.deepEqual(lanesOf(events, 'task_woken', task.id), [LANES.ready]);
    assert.deepEqual(lanesOf(events, 'task_polled', task.id), [LANES.ready]);
});

test('B5: a request moves a task to the cancel lane, and so does every wake after it', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(never);
    await host.settle();
    rt.events();
    task.cancel('stop');
    assert.equal(rt.info(task.id).lane, 'cancel');
    await host.settle();
    assert.equal(rt.info(task.id).lane, 'none');
    rt.wake(task.id);
    assert.equal(rt.info(task.id).lane, 'cancel');
    await host.settle();
    const events = rt.events();
    assert.deepEqual(lanesOf(events, 'task_polled', task.id), [LANES.cancel, LANES.cancel]);
    assert.deepEqual(lanesOf(events, 'task_woken', task.id), [LANES.cancel]);
});

test('B5: a task that waits in the ready lane when it is cancelled moves', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(never);
    await host.settle();
    rt.events();
    rt.wake(task.id);
    task.cancel('stop');
    assert.equal(rt.info(task.id).lane, 'cancel');
    await host.settle();
    assert.deepEqual(lanesOf(rt.events(), 'task_polled', task.id), [LANES.cancel]);
});

test('B5: a masked task that is cancelled is in the cancel lane as well', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn((cx) => cx.mask(never));
    await host.settle();
    task.cancel('stop');
    await host.settle();
    rt.wake(task.id);
    assert.equal(rt.info(task.id).lane, 'cancel');
});

test('B5: a task with a deadline runs in the timed lane', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(never, { timeout: 1000 });
    assert.equal(rt.info(task.id).lane, 'timed');
    await host.settle();
    assert.deepEqual(lanesOf(rt.events(), 'task_polled', task.id), [LANES.timed]);
});

test('B5: what is cancelled is polled before what is ready, though it was woken later', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const ready = Array.from({ length: 60 }, () => region.spawn(never));
    const cancelled = Array.from({ length: 6 }, () => region.spawn(never));
    await host.settle();
    rt.events();
    ready.forEach(({ id }) => rt.wake(id));
    cancelled.forEach((task) => task.cancel('stop'));
    await host.settle();
    const order = rt.events().filter(({ type }) => type === 'task_polled').map(({ taskId }) => taskId);
    const last = Math.max(...cancelled.map(({ id }) => order.indexOf(id)));
    assert.ok(last < 10, `the last of 6 cancelled tasks was poll ${last + 1} of ${order.length}`);
});

test('B5: a flood of cancelled tasks starves nobody: the worst waits are the contract\'s', async (t) => {
    const { host, rt } = virtual(t);
    const flood = rt.region();
    for (let i = 0; i < 400; i++) flood.spawn(never);
    const region = rt.region();
    const ready = Array.from({ length: 20 }, () => region.spawn(never));
    const timed = Array.from({ length: 20 }, () => region.spawn(never, { timeout: 1e6 }));
    await host.settle();
    [...ready, ...timed].forEach(({ id }) => rt.wake(id));
    flood.cancel('all of you');
    await host.settle();
    const { worstWait } = rt.stats();
    assert.ok(worstWait.cancel <= 2 && worstWait.timed <= 9 && worstWait.ready <= 9,
        JSON.stringify(worstWait));
    assert.ok(worstWait.ready > 0, 'there was contention');
});

test('B5: priority is what was asked for, and a region raises its tasks to its own', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(never, { priority: 7 });
    assert.equal(rt.info(task.id).priority, 7);
    assert.equal(task.witness().budget.priority, 7);
    const urgent = rt.region({ priority: 9 });
    const inner = urgent.spawn(never, { priority: 2 });
    await host.settle();
    urgent.cancel('stop');
    assert.equal(task.witness().budget.priority, 7);
    assert.equal(inner.witness().budget.priority, 9);
});
