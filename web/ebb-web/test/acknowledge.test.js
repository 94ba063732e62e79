import assert from 'node:assert/strict';
import test from 'node:test';

import { Cancelled } from '../index.js';
import { virtual } from './virtual-host.js';

const never = () => new Promise(() => {});

function gate() {
    let open;
    const opened = new Promise((resolve) => {
        open = resolve;
    });
    return { opened, open };
}

test('B2: an abort is a request: cx.signal aborts a turn later, and nothing is acknowledged', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const controller = new AbortController();
    const { opened, open } = gate();
    const task = region.spawn(async (cx) => {
        cx.signal.addEventListener('abort', () => {}); /* made, so that it can abort */
        await opened; /* a promise of somebody else's: no await of cx */
        cx.checkpoint();
    }, { signal: controller.signal });
    await host.settle();
    controller.abort();
    assert.equal(task.witness().phase, 'CancelRequested');
    assert.equal(task.cx.signal.aborted, false, 'not inside the abort');
    await host.settle();
    assert.equal(task.cx.signal.aborted, true);
    assert.equal(task.witness().phase, 'CancelRequested', 'a signal acknowledges nothing');
    await host.pass(10);
    assert.equal(task.witness().phase, 'CancelRequested');
    const events = rt.events();
    assert.ok(!events.some(({ type }) => type === 'cancel_acked'));
    open();
    await host.settle();
    assert.equal(task.witness().phase, 'Completed');
    assert.ok(rt.events().some(({ type, taskId }) => type === 'cancel_acked' && taskId === task.id));
    await assert.rejects(task.result, Cancelled);
});

test('B2: looking acknowledges nothing: cancelled, stopping, signal, reason(), witness()', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(never);
    await host.settle();
    task.cancel('stop');
    await host.settle();
    const { cx } = task;
    assert.equal(cx.cancelled, true);
    assert.equal(cx.stopping, true);
    assert.equal(cx.signal.aborted, true);
    assert.equal(cx.reason().message, 'USER: stop');
    assert.equal(rt.info(task.id).phase, 'CancelRequested');
    assert.equal(task.witness().phase, 'CancelRequested');
});

test('B2: a checkpoint acknowledges at once, in the code that calls it', async (t) => {
    const { host, rt } = virtual(t);
    const phases = [];
    const { opened, open } = gate();
    const task = rt.region().spawn(async (cx) => {
        await opened;
        phases.push(task.witness().phase);
        try {
            cx.checkpoint();
        } catch (error) {
            phases.push(task.witness().phase, error instanceof Cancelled);
            throw error;
        }
    });
    await host.settle();
    task.cancel('stop');
    await host.settle();
    open();
    await host.settle();
    assert.deepEqual(phases, ['CancelRequested', 'Cancelling', true]);
    await assert.rejects(task.result, Cancelled);
});

for (const [what, wait] of Object.entries({
    'cx.sleep': (cx) => cx.sleep(1000),
    'cx.wait': (cx) => cx.wait(never()),
    'cx.once': (cx) => cx.once(new EventTarget(), 'never'),
})) {
    test(`B2: ${what} is an await of cx: the poll after a request acknowledges and ends it`, async (t) => {
        const { host, rt } = virtual(t);
        let caught;
        const task = rt.region().spawn(async (cx) => {
            try {
                await wait(cx);
            } catch (error) {
                caught = [task.witness().phase, error.name, error.kind];
                throw error;
            }
        });
        await host.settle();
        task.cancel({ kind: 'DISCONNECT', message: 'gone' });
        assert.equal(task.witness().phase, 'CancelRequested');
        assert.equal(caught, undefined);
        await host.settle();
        assert.deepEqual(caught, ['Cancelling', 'AbortError', 'DISCONNECT']);
    });

    test(`B2: ${what} that begins after the request is a checkpoint itself`, async (t) => {
        const { host, rt } = virtual(t);
        const { opened, open } = gate();
        let caught;
        const task = rt.region().spawn(async (cx) => {
            await opened;
            try {
                await wait(cx);
            } catch (error) {
                caught = [task.witness().phase, error.kind];
            }
        });
        await host.settle();
        task.cancel();
        open();
        await host.settle();
        assert.deepEqual(caught, ['Cancelling', 'USER']);
        assert.equal(rt.stats().timers, 0);
    });
}

test('B2: once acknowledged every checkpoint says so again, with the same reason', async (t) => {
    const { host, rt } = virtual(t);
    const said = [];
    const task = rt.region().spawn(async (cx) => {
        for (let i = 0; i < 3; i++) {
            try {
                await cx.sleep(1000);
            } catch (error) {
                said.push(error.message);
            }
        }
    });
    await host.settle();
    task.cancel('enough');
    await host.settle();
    assert.deepEqual(said, ['USER: enough', 'USER: enough', 'USER: enough']);
    await assert.rejects(task.result, { name: 'AbortError', kind: 'USER', reason: 'enough' });
});

test('B2: the signal aborts with the reason as an error that says what, why and how badly', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(never);
    await host.settle();
    const { signal } = task.cx;
    task.cancel({ kind: 'TIMEOUT', message: 'too slow' });
    await host.settle();
    assert.ok(signal.reason instanceof Cancelled);
    const { name, kind, severity, epoch, reason } = signal.reason;
    assert.deepEqual({ name, kind, severity, epoch, reason },
        { name: 'TimeoutError', kind: 'TIMEOUT', severity: 'urgent', epoch: 1, reason: 'too slow' });
});

test('B2: a task that is cancelled before its first poll is called, and sees it', async (t) => {
    const { host, rt } = virtual(t);
    let seen;
    const task = rt.region().spawn((cx) => {
        seen = [cx.cancelled, task.witness().phase];
        return 'had nothing to undo';
    });
    task.cancel('never mind');
    await host.settle();
    assert.deepEqual(seen, [true, 'CancelRequested']);
    assert.equal(await task.result, 'had nothing to undo');
});
