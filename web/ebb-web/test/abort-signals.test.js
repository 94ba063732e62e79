import assert from 'node:assert/strict';
import test from 'node:test';

import { Cancelled } from '../index.js';
import { counted } from './counted-listeners.js';
import { real } from './real-host.js';
import { virtual } from './virtual-host.js';

const never = () => new Promise(() => {});

test('a signal that aborts cancels its task: kind USER, its message, its reason as the cause', async (t) => {
    const { host, rt } = virtual(t);
    const controller = new AbortController();
    const task = rt.region().spawn((cx) => cx.sleep(1000), { signal: controller.signal });
    await host.settle();
    const reason = new RangeError('the user went away');
    controller.abort(reason);
    await host.settle();
    const error = await task.result.catch((e) => e);
    assert.ok(error instanceof Cancelled);
    assert.deepEqual([error.name, error.kind, error.severity, error.reason],
        ['AbortError', 'USER', 'polite', reason.message]);
    assert.equal(error.cause, reason);
});

test('an error of another realm, which is no instance of ours, cancels with its message and as the cause', async (t) => {
    const { host, rt } = virtual(t);
    for (const [name, kind] of [['TimeoutError', 'TIMEOUT'], ['RangeError', 'USER']]) {
        const reason = Object.assign(Object.create(null), { name, message: 'from a frame' });
        const controller = new AbortController();
        const task = rt.region().spawn((cx) => cx.sleep(1000), { signal: controller.signal });
        await host.settle();
        controller.abort(reason);
        await host.settle();
        const error = await task.result.catch((e) => e);
        assert.deepEqual([error.kind, error.reason], [kind, 'from a frame']);
        assert.equal(error.cause, reason);
    }
});

test('a signal that is aborted already cancels before the first call, and leaves no listener', async (t) => {
    const { host, rt } = virtual(t);
    const controller = new AbortController();
    controller.abort('no more');
    const signal = counted(controller.signal);
    let seen;
    const task = rt.region().spawn((cx) => {
        seen = cx.cancelled;
        cx.checkpoint();
    }, { signal });
    assert.equal(task.witness().phase, 'CancelRequested');
    await host.settle();
    assert.equal(seen, true);
    await assert.rejects(task.result, { kind: 'USER', reason: 'no more', cause: 'no more' });
    assert.equal(signal.listenerCount(), 0);
});

test('a TimeoutError becomes TIMEOUT', async (t) => {
    const { host, rt } = virtual(t);
    const controller = new AbortController();
    const task = rt.region().spawn((cx) => cx.sleep(1000), { signal: controller.signal });
    await host.settle();
    controller.abort(new DOMException('took too long', 'TimeoutError'));
    await host.settle();
    await assert.rejects(task.result, { kind: 'TIMEOUT', severity: 'urgent', reason: 'took too long' });
});

test('the platform\'s own AbortSignal.timeout cancels with TIMEOUT', async (t) => {
    const rt = real(t);
    const task = rt.region().spawn((cx) => cx.sleep(10000), { signal: AbortSignal.timeout(10) });
    const error = await task.result.catch((e) => e);
    assert.equal(error.kind, 'TIMEOUT');
    assert.equal(error.cause.name, 'TimeoutError');
});

for (const [what, reason] of Object.entries({
    'undefined': undefined, 'null': null, 'a number': 7, 'a symbol': Symbol('why'), 'an object': { a: 1 },
    'an object without a prototype': Object.create(null),
    'an object that throws when it is printed': { toString() { throw new Error('no'); } },
    'an error whose message throws': Object.defineProperty(new Error(), 'message',
        { get() { throw new Error('no'); } }),
})) {
    test(`a signal that aborts with ${what} cancels as any other, now or before`, async (t) => {
        const { host, rt } = virtual(t);
        const region = rt.region();
        const controller = new AbortController();
        const later = region.spawn((cx) => cx.sleep(1000), { signal: controller.signal });
        await host.settle();
        controller.abort(reason);
        const before = region.spawn((cx) => cx.sleep(1000), { signal: controller.signal });
        await host.settle();
        for (const task of [later, before]) {
            const error = await task.result.catch((e) => e);
            assert.equal(error.kind, 'USER');
            if (reason !== undefined && reason !== null) assert.equal(error.cause, reason);
        }
    });
}

test('a region\'s signal cancels all of it, and everybody in it has the cause', async (t) => {
    const { host, rt } = virtual(t);
    const controller = new AbortController();
    const region = rt.region({ signal: controller.signal });
    const tasks = [region.spawn((cx) => cx.sleep(1000)), region.region().spawn((cx) => cx.sleep(1000))];
    await host.settle();
    const reason = new Error('closed the tab');
    controller.abort(reason);
    await host.settle();
    for (const task of tasks) {
        const error = await task.result.catch((e) => e);
        assert.ok(error instanceof Cancelled);
        assert.equal(error.cause, reason);
    }
    assert.equal((await host.until(region.done)).status, 'cancelled');
});

test('the cause is that of the request that stands, not of a signal that came later', async (t) => {
    const { host, rt } = virtual(t);
    const controller = new AbortController();
    const task = rt.region().spawn(never, { signal: controller.signal });
    await host.settle();
    task.cancel('mine');
    controller.abort(new Error('another'));
    const reason = task.cx.reason();
    assert.deepEqual([reason.reason, reason.cause], ['mine', undefined]);
});

test('out: cx.signal stops what takes a signal, with a reason that says why', async (t) => {
    const { host, rt } = virtual(t);
    const work = (signal) => new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
    });
    const task = rt.region().spawn((cx) => work(cx.signal));
    await host.settle();
    task.cancel({ kind: 'DISCONNECT', message: 'gone' });
    await host.settle();
    await assert.rejects(task.result, { name: 'AbortError', kind: 'DISCONNECT', reason: 'gone' });
    assert.equal(task.witness().phase, 'Completed');
});

test('out: cx.signal is one signal, asked for early or late', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(never);
    await host.settle();
    task.cancel('stop');
    await host.settle();
    const { signal } = task.cx;
    assert.equal(signal, task.cx.signal);
    assert.equal(signal.aborted, true, 'made after the abort');
    assert.equal(signal.reason.kind, 'USER');
});

test('out and in: the signal of one runtime cancels in another; its Cancelled is the cause', async (t) => {
    const [one, two] = [virtual(t), virtual(t)];
    const outer = one.rt.region().spawn(never);
    const inner = two.rt.region().spawn((cx) => cx.sleep(1000), { signal: outer.cx.signal });
    await one.host.settle();
    await two.host.settle();
    outer.cancel({ kind: 'SHUTDOWN', message: 'going down' });
    await one.host.settle();
    await two.host.settle();
    const error = await inner.result.catch((e) => e);
    assert.ok(error.cause instanceof Cancelled);
    assert.equal(error.cause.kind, 'SHUTDOWN');
    assert.equal(error.kind, 'SHUTDOWN', 'a request does not weaken on its way');
});

test('a Cancelled is a reason to cancel with: its kind, its message, not prefixed again', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const [a, b, c] = [never, never, never].map((fn) => region.spawn(fn));
    await host.settle();
    a.cancel({ kind: 'DISCONNECT', message: 'gone' });
    b.cancel(a.cx.reason());
    assert.deepEqual([b.witness().kind, rt.info(b.id).message], ['DISCONNECT', 'gone']);
    const parent = rt.region();
    const child = parent.region().spawn(never);
    await host.settle();
    parent.cancel({ kind: 'TIMEOUT', message: 'late' });
    c.cancel(child.cx.reason());
    assert.equal(c.witness().severity, 'urgent', 'what was PARENT there keeps its severity');
});

test('listeners: one while the work is there, none when it has settled, whatever ended it', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region({ collect: true });
    region.done.catch(() => {});
    const ends = {
        returns: [(cx) => cx.sleep(5), () => {}],
        throws: [async (cx) => {
            await cx.sleep(5);
            throw new Error('thrown');
        }, () => {}],
        'is cancelled': [(cx) => cx.sleep(1000), (task) => task.cancel()],
        'is aborted': [(cx) => cx.sleep(1000), (task, controller) => controller.abort()],
        'is forced': [never, (task) => task.force()],
        'times out': [(cx) => cx.sleep(1000), () => {}, { timeout: 5 }],
    };
    for (const [how, [fn, act, options]] of Object.entries(ends)) {
        const controller = new AbortController();
        const signal = counted(controller.signal);
        const task = region.spawn(fn, { signal, ...options });
        await host.settle();
        assert.equal(signal.listenerCount(), 1, how);
        act(task, controller);
        await host.pass(20);
        assert.equal(task.ended, true, how);
        assert.equal(signal.listenerCount(), 0, how);
    }
    const signal = counted(new AbortController().signal);
    const closed = rt.region({ signal });
    assert.equal(signal.listenerCount(), 1);
    await host.until(closed.close());
    assert.equal(signal.listenerCount(), 0);
});

test('listeners: a spawn that is refused leaves none', async (t) => {
    const { rt } = virtual(t);
    const region = rt.region();
    region.close();
    const signal = counted(new AbortController().signal);
    assert.throws(() => region.spawn(never, { signal }), { code: 'EBB_ERR_CLOSED' });
    assert.throws(() => region.region({ signal }), { code: 'EBB_ERR_CLOSED' });
    assert.throws(() => rt.region().spawn('no function', { signal }), TypeError);
    assert.throws(() => rt.region().spawn(never, { signal, timeout: -1 }), TypeError);
    assert.equal(signal.listenersAdded(), 0);
});

for (const bad of [null, 5, 'signal', {}, new EventTarget(), { aborted: false }]) {
    test(`a signal that is ${Object.prototype.toString.call(bad)} is a TypeError`, (t) => {
        const { rt } = virtual(t);
        const region = rt.region();
        assert.throws(() => region.spawn(never, { signal: bad }), TypeError);
        assert.throws(() => rt.region({ signal: bad }), TypeError);
        assert.equal(rt.stats().tasks, 0);
        assert.equal(rt.stats().regions, 2);
    });
}

test('an abort with very many targets tells some at once and the others in later turns', async (t) => {
    let slow = 0; /* milliseconds that a look at the clock takes */
    let time = 0;
    const { host, rt } = virtual(t, { capabilities: { now: () => (time += slow) } });
    const controller = new AbortController();
    const region = rt.region({ timeout: 1e9 });
    const tasks = Array.from({ length: 50 }, () => region.spawn((cx) => cx.sleep(1e9), { signal: controller.signal }));
    await host.settle();
    slow = 1;
    controller.abort('enough');
    slow = 0;
    const told = tasks.filter((task) => task.epoch > 0).length;
    assert.ok(told >= 1 && told <= 8, `${told} of 50 were told at once`);
    await host.pass(0);
    for (const task of tasks) await assert.rejects(task.result, { kind: 'USER', cause: 'enough' });
});
