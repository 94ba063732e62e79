import assert from 'node:assert/strict';
import test from 'node:test';

import { Cancelled } from '../index.js';
import { virtual } from './virtual-host.js';

/** A task that returns what `settle` says, when it says so. */
function held(rt, before = () => {}) {
    let settle;
    const region = rt.region({ collect: true });
    region.done.catch(() => {});
    const task = region.spawn(async (cx) => {
        await new Promise((resolve, reject) => {
            settle = { resolve, reject };
        });
        before(cx);
        return 'the work is done';
    });
    return { task, finish: () => settle.resolve(), fail: (error) => settle.reject(error) };
}

test('R2: a task that completes before it acknowledges has completed with what it returned', async (t) => {
    const { host, rt } = virtual(t);
    const { task, finish } = held(rt);
    await host.settle();
    task.cancel('too late');
    await host.settle();
    finish();
    await host.settle();
    assert.equal(await task.result, 'the work is done');
    assert.equal(task.witness().phase, 'Completed');
    assert.equal(task.witness().kind, 'USER');
    const types = rt.events().filter(({ taskId }) => taskId === task.id).map(({ type }) => type);
    assert.ok(types.includes('completed') && !types.includes('cancel_acked') && !types.includes('finalized'));
});

test('R2: both in one turn, the completion first', async (t) => {
    const { host, rt } = virtual(t);
    const { task, finish } = held(rt);
    await host.settle();
    finish();
    await Promise.resolve();
    task.cancel('too late');
    await host.settle();
    assert.equal(await task.result, 'the work is done');
});

test('R2: both in one turn, the request first', async (t) => {
    const { host, rt } = virtual(t);
    const { task, finish } = held(rt);
    await host.settle();
    task.cancel('just before');
    finish();
    await host.settle();
    assert.equal(await task.result, 'the work is done', 'nothing was acknowledged');
});

test('R2: a task that has acknowledged ends as cancelled, whatever it returns', async (t) => {
    const { host, rt } = virtual(t);
    const { task, finish } = held(rt, (cx) => {
        try {
            cx.checkpoint();
        } catch {
            /* and it goes on as if nothing was */
        }
    });
    await host.settle();
    task.cancel('enough');
    await host.settle();
    finish();
    await host.settle();
    await assert.rejects(task.result, (error) => error instanceof Cancelled && error.reason === 'enough');
    const types = rt.events().filter(({ taskId }) => taskId === task.id).map(({ type }) => type);
    const order = ['cancel_requested', 'cancel_acked', 'cleanup_done', 'finalized'];
    assert.deepEqual(types.filter((type) => order.includes(type)), order);
});

test('R2: a failure before the acknowledgement is the outcome, and fails the region', async (t) => {
    const { host, rt } = virtual(t);
    const { task, fail } = held(rt);
    await host.settle();
    task.cancel('too late');
    await host.settle();
    fail(new RangeError('went wrong'));
    await host.settle();
    await assert.rejects(task.result, RangeError);
    await assert.rejects(host.until(task.region.join()), RangeError);
});

test('R2: a cancelled task that throws AbortError of its own, as fetch does, is cancelled', async (t) => {
    const { host, rt } = virtual(t);
    const { task, fail } = held(rt);
    await host.settle();
    task.cancel('stop');
    await host.settle();
    fail(new DOMException('The operation was aborted', 'AbortError'));
    await host.settle();
    await assert.rejects(task.result, { name: 'AbortError' });
    assert.equal((await host.until(task.region.join())).status, 'ok', 'the task was cancelled, the region was not');
});

test('R2: an AbortError that nobody asked for is a failure', async (t) => {
    const { host, rt } = virtual(t);
    const { task, fail } = held(rt);
    await host.settle();
    fail(new DOMException('The operation was aborted', 'AbortError'));
    await host.settle();
    await assert.rejects(task.result, { name: 'AbortError' });
    await assert.rejects(host.until(task.region.join()), { name: 'AbortError' });
});

test('R2: what a cleanup throws after the acknowledgement is not lost: the report has it', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn(async (cx) => {
        try {
            await cx.sleep(1000);
        } finally {
            throw new TypeError('a bug in the cleanup');
        }
    });
    await host.settle();
    task.cancel('stop');
    await host.settle();
    await assert.rejects(task.result, Cancelled);
    const report = await host.until(region.close());
    assert.equal(report.status, 'ok');
    assert.deepEqual(report.suppressed.map(({ message }) => message), ['a bug in the cleanup']);
});
