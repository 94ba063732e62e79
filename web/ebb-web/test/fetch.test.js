import assert from 'node:assert/strict';
import test from 'node:test';

import { Cancelled } from '../index.js';
import { counted } from './counted-listeners.js';
import { virtual } from './virtual-host.js';

/** A fetch that answers when it is told to, and stops when its signal says so, as the platform's does. */
function fakeFetch() {
    const calls = [];
    const fetch = (input, init) => new Promise((resolve, reject) => {
        const { signal } = init;
        const stop = () => reject(signal.reason);
        if (signal.aborted) stop();
        else signal.addEventListener('abort', stop);
        calls.push({ input, init, signal, answer: resolve, fail: reject });
    });
    return { fetch, calls };
}

function fetching(t) {
    const { fetch, calls } = fakeFetch();
    return { calls, ...virtual(t, { capabilities: { fetch } }) };
}

test('cx.fetch passes on what it was given, with a signal, and gives back what came', async (t) => {
    const { host, rt, calls } = fetching(t);
    const init = { method: 'POST', headers: { a: 'b' }, body: 'text' };
    const task = rt.region().spawn((cx) => cx.fetch('/path', init));
    await host.settle();
    const [{ input, init: passed, signal, answer }] = calls;
    assert.equal(input, '/path');
    assert.deepEqual({ ...passed, signal: undefined }, { ...init, signal: undefined });
    assert.ok(signal instanceof AbortSignal);
    assert.deepEqual(Object.keys(init), ['method', 'headers', 'body'], 'the caller\'s object is as it was');
    answer('response');
    await host.settle();
    assert.equal(await task.result, 'response');
});

for (const init of [undefined, null, {}, { signal: null }, { signal: undefined }]) {
    test(`cx.fetch takes ${JSON.stringify(init)} for no options`, async (t) => {
        const { host, rt, calls } = fetching(t);
        const task = rt.region().spawn((cx) => cx.fetch('/', init));
        await host.settle();
        calls[0].answer('fine');
        await host.settle();
        assert.equal(await task.result, 'fine');
    });
}

test('a cancel aborts the request, in the turn after it, and is what the task ends with', async (t) => {
    const { host, rt, calls } = fetching(t);
    const task = rt.region().spawn((cx) => cx.fetch('/'));
    await host.settle();
    task.cancel('leave the page');
    assert.equal(calls[0].signal.aborted, false);
    await host.settle();
    assert.equal(calls[0].signal.aborted, true);
    await assert.rejects(task.result, { name: 'AbortError', kind: 'USER', reason: 'leave the page' });
    assert.equal(task.witness().phase, 'Completed');
});

test('a body that is still being read is aborted too', async (t) => {
    const { host, rt, calls } = fetching(t);
    const task = rt.region().spawn(async (cx) => {
        const response = await cx.fetch('/');
        return cx.wait(response.text());
    });
    await host.settle();
    calls[0].answer({ text: () => new Promise(() => {}) });
    await host.settle();
    assert.equal(calls[0].signal.aborted, false);
    task.cancel('stop');
    await host.settle();
    assert.equal(calls[0].signal.aborted, true);
    await assert.rejects(task.result, Cancelled);
});

test('a masked fetch is not aborted', async (t) => {
    const { host, rt, calls } = fetching(t);
    const task = rt.region().spawn((cx) => cx.mask(() => cx.fetch('/')));
    await host.settle();
    task.cancel('stop');
    await host.settle();
    assert.equal(calls[0].signal.aborted, false);
    calls[0].answer('saved');
    await host.settle();
    assert.equal(await task.result, 'saved');
});

test('a task that is cancelled already asks for nothing', async (t) => {
    const { host, rt, calls } = fetching(t);
    const task = rt.region().spawn((cx) => cx.fetch('/'));
    task.cancel('too late');
    await host.settle();
    assert.equal(calls.length, 0);
    await assert.rejects(task.result, Cancelled);
});

test('a signal of the caller\'s aborts it as well; the task fails with that, uncancelled', async (t) => {
    const { host, rt, calls } = fetching(t);
    const controller = new AbortController();
    const region = rt.region();
    region.done.catch(() => {});
    const task = region.spawn((cx) => cx.fetch('/', { signal: controller.signal }));
    await host.settle();
    const reason = new Error('mine');
    controller.abort(reason);
    assert.equal(calls[0].signal.aborted, true);
    assert.equal(calls[0].signal.reason, reason);
    await host.settle();
    assert.equal(await task.result.catch((error) => error), reason);
    assert.equal(task.witness().epoch, 0);
});

test('a signal of the caller\'s that is aborted already aborts at once', async (t) => {
    const { host, rt } = fetching(t);
    const region = rt.region();
    region.done.catch(() => {});
    const task = region.spawn((cx) => cx.fetch('/', { signal: AbortSignal.abort('before') }));
    await host.settle();
    assert.equal(await task.result.catch((error) => error), 'before');
});

test('the signal of a Request is heard too', async (t) => {
    const { host, rt, calls } = fetching(t);
    const controller = new AbortController();
    const region = rt.region();
    region.done.catch(() => {});
    region.spawn((cx) => cx.fetch(new Request('http://localhost/', { signal: controller.signal })));
    await host.settle();
    controller.abort();
    assert.equal(calls[0].signal.aborted, true);
});

test('with a signal of the caller\'s a cancel is still a cancel', async (t) => {
    const { host, rt } = fetching(t);
    const signal = counted(new AbortController().signal);
    const task = rt.region().spawn((cx) => cx.fetch('/', { signal }));
    await host.settle();
    task.cancel('stop');
    await host.settle();
    await assert.rejects(task.result, (error) => error instanceof Cancelled && error.reason === 'stop');
    assert.equal(signal.listenerCount(), 0);
});

test('the listeners of a fetch are gone when the task has settled', async (t) => {
    const { host, rt, calls } = fetching(t);
    const signal = counted(new AbortController().signal);
    const region = rt.region({ collect: true });
    region.done.catch(() => {});
    const tasks = Array.from({ length: 3 }, () => region.spawn((cx) => cx.fetch('/', { signal })));
    await host.settle();
    assert.ok(signal.listenerCount() > 0);
    calls[0].answer('fine');
    calls[1].fail(new TypeError('network'));
    tasks[2].cancel();
    await host.settle();
    assert.equal(signal.listenerCount(), 0);
    assert.equal(await tasks[0].result, 'fine');
    await assert.rejects(tasks[1].result, TypeError);
});

test('a fetch that fails by itself fails the task with that error', async (t) => {
    const { host, rt, calls } = fetching(t);
    const region = rt.region();
    region.done.catch(() => {});
    const task = region.spawn((cx) => cx.fetch('/'));
    await host.settle();
    calls[0].fail(new TypeError('Failed to fetch'));
    await host.settle();
    await assert.rejects(task.result, { name: 'TypeError', message: 'Failed to fetch' });
});

test('a fetch that says AbortError and no more is an acknowledged cancel, with its reason', async (t) => {
    const fetch = (input, { signal }) => new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')));
    });
    const { host, rt } = virtual(t, { capabilities: { fetch } });
    const task = rt.region().spawn((cx) => cx.fetch('/'));
    await host.settle();
    task.cancel({ kind: 'DISCONNECT', message: 'gone' });
    await host.settle();
    await assert.rejects(task.result, (error) => error instanceof Cancelled && error.kind === 'DISCONNECT');
    assert.ok(rt.events().some(({ type, taskId }) => type === 'cancel_acked' && taskId === task.id));
});
