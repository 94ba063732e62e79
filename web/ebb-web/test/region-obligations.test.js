import assert from 'node:assert/strict';
import test from 'node:test';

import { Obligation } from '../index.js';
import { counted } from './counted-listeners.js';
import { hears } from './hearing.js';
import { virtual } from './virtual-host.js';
import { packageFile, trapping } from './wasm-bytes.js';

const never = () => new Promise(() => {});

/** The types of the region's own events, in order. */
function told(rt, types) {
    return rt.events().map(({ type }) => type).filter((type) => types.includes(type));
}

test('finalizers of a region run last added first, when all in it has ended and before it closes', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const region = rt.region({ name: 'job' });
    for (const n of [1, 2]) {
        region.defer(async (cx) => {
            log.push(`${n} begins`);
            await cx.sleep(10);
            log.push(`${n} ends`);
        });
    }
    const child = region.region();
    child.spawn(async (cx) => {
        cx.defer(() => log.push('task'));
        await cx.sleep(5);
    });
    child.join().then(() => log.push('child'));
    region.done.then(() => log.push('closed'));
    const report = await host.until(region.join());
    assert.deepEqual(log, ['task', 'child', '2 begins', '2 ends', '1 begins', '1 ends', 'closed']);
    assert.equal(report.status, 'ok');
});

for (const verb of ['close', 'cancel', 'force', 'join']) {
    test(`finalizers of a region run once each after ${verb}`, async (t) => {
        const { host, rt } = virtual(t);
        const region = rt.region();
        let ran = 0;
        region.defer(() => ran++);
        region.defer(async () => ran++);
        region.spawn((cx) => cx.sleep(1).catch(() => {}));
        await host.settle();
        region[verb]();
        await host.finish();
        assert.equal(region.ended, true);
        assert.equal(ran, 2);
        const done = rt.events().filter(({ type }) => type === 'finalizer_done');
        assert.deepEqual(done.map(({ status }) => status), ['EBB_OK', 'EBB_OK']);
    });
}

test('a finalizer of a cancelled region is masked, may reserve, and may open a cleanup region', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const log = [];
    region.defer(async (cx) => {
        log.push(cx.cancelled, cx.task.region === region);
        const row = cx.reserve('transaction', () => log.push('never'));
        const scope = cx.region({ cleanup: true, name: 'scope' });
        scope.spawn(async (inner) => {
            await inner.sleep(1);
            log.push('cleaned');
        });
        log.push((await scope.join()).status);
        row.commit();
    });
    region.spawn((cx) => cx.wait(never()));
    await host.settle();
    region.cancel('stop');
    const report = await host.until(region.done);
    assert.deepEqual(log, [false, true, 'cleaned', 'ok']);
    assert.deepEqual(report.counts, { abandoned: 0, leaked: 0, forced: 0 });
    assert.equal(rt.stats().leaks, 0);
});

test('what a finalizer of a region throws is the failure of the region', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const why = new Error('disk full');
    region.defer(() => {
        throw why;
    });
    await assert.rejects(host.until(region.close()), (error) => error === why);
    assert.equal(region.report.status, 'failed');
    assert.deepEqual(region.report.failures, [why]);
});

test('a finalizer of a region that never ends is abandoned when the budget is over: counted, and named in the trace', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region({ name: 'job' });
    region.defer(async function flush() {
        await never();
    });
    region.cancel({ kind: 'USER', within: 100 });
    await host.pass(99);
    assert.equal(region.ended, false);
    await host.finish();
    assert.equal(region.report.counts.abandoned, 1);
    assert.equal(region.report.counts.forced, 1);
    assert.deepEqual(region.report.forced, [{ site: 'job.closer', region: 'job', abandoned: true }]);
    const event = rt.events().find(({ type }) => type === 'finalizer_abandoned');
    assert.equal(event.text, 'job: flush');
});

test('waits and listeners of a finalizer of a region are gone when the region has closed', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const target = new EventTarget();
    const log = [];
    let kept;
    region.defer((cx) => {
        kept = cx;
        cx.on(target, 'ping', () => log.push('heard'));
        cx.once(target, 'pong').catch((error) => log.push(error.code));
        target.dispatchEvent(new Event('ping'));
    });
    await host.until(region.close());
    target.dispatchEvent(new Event('ping'));
    await host.finish();
    assert.deepEqual(log, ['heard', 'EBB_ERR_STALE']);
    assert.throws(() => kept.checkpoint(), { code: 'EBB_ERR_STALE', message: /closer has ended/ });
});

test('an obligation of a region holds it until it is resolved', async (t) => {
    const { host, rt } = virtual(t);
    for (const verb of ['commit', 'abort']) {
        const region = rt.region();
        const log = [];
        const fence = region.reserve('fence', () => log.push('hook'));
        assert.ok(fence instanceof Obligation);
        assert.equal(region.info().obligations, 1);
        region.close();
        await host.settle();
        assert.equal(region.ended, false);
        assert.equal(region.info().state, 'Finalizing');
        fence[verb]();
        await host.settle();
        assert.equal(region.ended, true);
        assert.deepEqual(log, verb === 'abort' ? ['hook'] : []);
        assert.throws(() => fence.commit(), { code: 'EBB_ERR_RESOLVED', message: /fence of region/ });
        assert.deepEqual(region.report.counts, { abandoned: 0, leaked: 0, forced: 0 });
    }
});

test('a finalizer of the region may be what resolves its obligation', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const lease = region.reserve('lease');
    region.defer(async (cx) => {
        await cx.sleep(5);
        lease.commit();
    });
    const report = await host.until(region.close());
    assert.deepEqual(report.counts, { abandoned: 0, leaked: 0, forced: 0 });
    const types = ['finalizer_done', 'obligation_committed', 'region_closed'];
    assert.deepEqual(told(rt, types), ['obligation_committed', 'finalizer_done', 'region_closed']);
});

test('a region that is forced leaks its obligation: aborted, counted, named', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region({ name: 'job' });
    const log = [];
    const lease = region.reserve('lease', () => log.push('hook'));
    region.force();
    const report = await host.until(region.done);
    assert.deepEqual(log, ['hook']);
    assert.equal(lease.resolved, true);
    assert.deepEqual(report.leaked.map(({ site }) => site), ['job: lease']);
    assert.throws(() => lease.abort(), { code: 'EBB_ERR_RESOLVED' });
});

test('a region that is closed, cancelled or has ended takes neither', async (t) => {
    const { host, rt } = virtual(t);
    for (const verb of ['close', 'cancel']) {
        const region = rt.region({ name: 'job' });
        region.spawn((cx) => cx.mask(() => cx.sleep(10)));
        await host.settle();
        region[verb]('stop');
        const refusal = verb === 'cancel'
            ? () => ({ name: 'AbortError', kind: 'USER', message: /stop/ })
            : (what) => ({ code: 'EBB_ERR_CLOSED', message: what });
        for (let i = 0; i < 2; i++) {
            assert.throws(() => region.defer(() => {}), refusal(/defer in region job/));
            assert.throws(() => region.reserve('io'), refusal(/reserve\(io\) in region job/));
            await host.finish();
            assert.equal(region.ended, true);
        }
    }
});

test('a wrong argument is a TypeError that says what was expected', (t) => {
    const { rt } = virtual(t);
    const region = rt.region();
    assert.throws(() => region.defer('x'), { name: 'TypeError', message: /region.defer: expected a function/ });
    assert.throws(() => region.reserve('x'), { name: 'TypeError', message: /permit.*transaction/ });
    assert.throws(() => region.reserve('io', 1), { name: 'TypeError', message: /region.reserve: expected a function/ });
});

test('a long-lived region that reserves and resolves keeps nothing of it', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    for (let i = 0; i < 100; i++) region.reserve('permit').commit();
    await host.settle();
    assert.equal(rt.slots.all().filter((item) => item instanceof Obligation).length, 0);
    region.reserve('permit');
    region.force();
    await host.until(region.done);
    assert.equal(rt.slots.all().filter((item) => item instanceof Obligation).length, 0);
});

for (const error of [new DOMException('cut', 'AbortError'), new Error('late')]) {
    test(`a finalizer that throws ${error.name} after it was abandoned is heard by nobody`, async (t) => {
        const heard = hears(t);
        const { host, rt } = virtual(t);
        const region = rt.region({ collect: true });
        let fail;
        region.defer(() => new Promise((_, reject) => (fail = reject)));
        region.force();
        const report = await host.until(region.done);
        assert.equal(report.counts.abandoned, 1);
        fail(error);
        assert.deepEqual(await heard(0), []);
        assert.deepEqual([report.failures, report.suppressed], [[], []]);
    });
}

test('listeners of a finalizer of a region are gone when the runtime has trapped', async (t) => {
    const { host, rt } = virtual(t, { module: trapping(await packageFile('ebb.wasm'), ['take_trace']) });
    const target = counted(new EventTarget());
    const region = rt.region();
    for (const { done } of [region, rt.root]) done.catch(() => {});
    region.defer(async (cx) => {
        cx.on(target, 'ping', () => {});
        await cx.once(target, 'pong').catch(() => {});
    });
    region.close();
    await host.settle();
    assert.equal(target.listenerCount(), 2);
    assert.throws(() => rt.takeTrace(), { code: 'EBB_TRAPPED' });
    await host.settle();
    assert.equal(target.listenerCount(), 0);
});
