/* Leaving the page: force, now, without a message, a timer or a turn of the host's loop. */
import assert from 'node:assert/strict';
import test from 'node:test';

import { VirtualHost, virtual } from './virtual-host.js';
import { Runtime } from '../index.js';

const never = () => new Promise(() => {});

/** Only promises go on: the host's microtasks, messages and timers never come. */
async function promisesOnly() {
    for (let i = 0; i < 2000; i++) await null;
}

test('what can unwind ends as usual, the rest is abandoned and named, and all finalizers run', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const page = rt.region({ name: 'page' });
    const body = (wait, name) => async (cx) => {
        cx.defer(() => log.push(`${name} finalized`));
        cx.reserve('lease', () => log.push(`${name} lease aborted`));
        try {
            await wait(cx);
        } finally {
            log.push(`${name} cleaned up`);
        }
    };
    page.spawn(body((cx) => cx.sleep(1000), 'sleeper'), { name: 'sleeper' });
    page.region({ name: 'inner' }).spawn(body(never, 'stuck'), { name: 'stuck' });
    await host.settle();
    const leaving = rt.flush();
    await promisesOnly();
    assert.equal(rt.root.ended, true);
    const report = await leaving;
    assert.deepEqual(log.filter((line) => line.startsWith('sleeper')),
        ['sleeper cleaned up', 'sleeper finalized', 'sleeper lease aborted']);
    assert.deepEqual(log.filter((line) => line.startsWith('stuck')), ['stuck finalized', 'stuck lease aborted']);
    assert.equal(report.status, 'cancelled');
    assert.deepEqual(report.forced.filter(({ abandoned }) => abandoned),
        [{ site: 'stuck', region: 'inner', abandoned: true }]);
    assert.equal(rt.stats().tasks, 0);
});

test('a runtime that was flushed is closed, and says so', async (t) => {
    const { host, rt } = virtual(t);
    const page = rt.region({ name: 'page' });
    page.spawn((cx) => cx.sleep(1000));
    await host.settle();
    await rt.flush();
    assert.equal(rt.flushed, true);
    for (const act of [() => rt.region(), () => page.spawn(() => {})]) {
        assert.throws(act, { code: 'EBB_ERR_CLOSED', message: /flushed/ });
    }
    assert.equal(await rt.flush(), rt.root.report);
});

test('what has settled when the page is left is not cut', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(async () => 'done');
    await host.settle();
    const { forced, abandoned } = await rt.flush();
    assert.deepEqual([forced, abandoned, await task.result], [[], [], 'done']);
});

test('a flush in a task\'s own code waits for the batch that it is called from', async (t) => {
    const { host, rt } = virtual(t);
    rt.region().spawn((cx) => {
        rt.flush();
        return cx.sleep(1000);
    }, { name: 'leaver' });
    await host.settle();
    assert.equal(rt.root.ended, true);
    assert.deepEqual(rt.root.report.forced.map(({ site }) => site), ['leaver']);
});

test('code that unwinds over many awaits has the microtasks for it', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const deep = async (cx, n) => {
        try {
            await (n === 0 ? cx.sleep(1000) : deep(cx, n - 1));
        } finally {
            log.push(n);
        }
    };
    rt.region().spawn((cx) => deep(cx, 40));
    await host.settle();
    const { forced } = await rt.flush();
    assert.equal(log.length, 41);
    assert.deepEqual(forced.map(({ abandoned }) => abandoned), [false]);
});

test('with a page the runtime flushes itself at pagehide, and listens no longer than it lives', async () => {
    const page = new EventTarget();
    const listening = new Set();
    const watched = {
        addEventListener: (type, listener) => {
            listening.add(type);
            page.addEventListener(type, listener);
        },
        removeEventListener: (type, listener) => {
            listening.delete(type);
            page.removeEventListener(type, listener);
        },
    };
    const host = new VirtualHost();
    const rt = new Runtime({ ...host.capabilities, page: watched });
    let cleaned = false;
    rt.region().spawn((cx) => cx.sleep(1000).finally(() => {
        cleaned = true;
    }));
    await host.settle();
    assert.deepEqual([...listening], ['pagehide']);
    page.dispatchEvent(new Event('pagehide'));
    await promisesOnly();
    assert.deepEqual([cleaned, rt.root.ended, [...listening]], [true, true, []]);
    assert.throws(() => new Runtime({ ...host.capabilities, page: {} }), TypeError);
});

test('finalizers and obligations of regions end at a flush, those of the root too', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const page = rt.region({ name: 'page' });
    rt.root.defer(() => log.push('root finalized'));
    page.defer(async () => {
        await null;
        log.push('page finalized');
    });
    page.defer(async function stuck() {
        log.push('stuck begins');
        await never();
    });
    const lease = page.reserve('lease', () => log.push('lease aborted'));
    page.spawn(async (cx) => {
        cx.defer(never);
        await cx.sleep(1000);
    }, { name: 'worker' });
    await host.settle();
    rt.flush();
    await promisesOnly();
    assert.equal(rt.root.ended, true);
    assert.deepEqual([...log].sort(), ['lease aborted', 'page finalized', 'root finalized', 'stuck begins']);
    assert.equal(log.indexOf('stuck begins') < log.indexOf('page finalized'), true);
    assert.equal(log.at(-1), 'root finalized');
    assert.equal(lease.resolved, true);
    const { forced, counts } = rt.root.report;
    assert.deepEqual(forced, [
        { site: 'worker', region: 'page', abandoned: false }, { site: 'page.closer', region: 'page', abandoned: true },
    ]);
    assert.deepEqual(page.report.leaked.map(({ site }) => site), ['page: lease']);
    assert.equal(counts.abandoned + counts.leaked, 0); /* these are the page's */
    assert.throws(() => page.defer(() => {}), { code: 'EBB_ERR_CLOSED', message: /flushed/ });
});
