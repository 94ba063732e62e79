import assert from 'node:assert/strict';
import test from 'node:test';

import { Cancelled, Region } from '../index.js';
import { CLEAN } from './contract.js';
import { virtual } from './virtual-host.js';

const never = () => new Promise(() => {});

test('join waits for all, admits more until then, and closes by itself', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region({ name: 'work' });
    const log = [];
    region.spawn(async (cx) => {
        await cx.sleep(10);
        region.spawn(async (c) => {
            await c.sleep(10);
            log.push('late work');
        });
        log.push('work');
    });
    const joined = region.join().then((report) => log.push(report.status));
    await host.pass(15);
    assert.deepEqual(log, ['work']);
    assert.equal(region.ended, false);
    await host.pass(15);
    await joined;
    assert.deepEqual(log, ['work', 'late work', 'ok']);
    assert.equal(region.ended, true);
    assert.deepEqual(await region.done, { status: 'ok', ...CLEAN });
});

test('join of an empty region closes it', async (t) => {
    const { host, rt } = virtual(t);
    assert.deepEqual(await host.until(rt.region().join()), { status: 'ok', ...CLEAN });
});

test('close refuses new work at once, by name, and lets what runs finish', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region({ name: 'shop' });
    const task = region.spawn(async (cx) => {
        await cx.sleep(10);
        return [cx.stopping, cx.cancelled];
    });
    await host.settle();
    assert.equal(task.cx.stopping, false);
    const closed = region.close();
    assert.equal(task.cx.stopping, true);
    assert.throws(() => region.spawn(never, { name: 'customer' }),
        { name: 'EbbError', code: 'EBB_ERR_CLOSED', message: /customer.*shop/ });
    assert.throws(() => region.region({ name: 'annex' }), { code: 'EBB_ERR_CLOSED', message: /annex.*shop/ });
    await assert.rejects(region.race([never]), { code: 'EBB_ERR_CLOSED' });
    assert.equal((await host.until(closed)).status, 'ok');
    assert.deepEqual(await task.result, [true, false]);
});

test('a task of a closing region may reserve what it needs to end well, and resolves it', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn(async (cx) => {
        const obligation = cx.reserve('transaction');
        await cx.sleep(10);
        cx.reserve('permit').commit();
        assert.throws(() => cx.region(), { code: 'EBB_ERR_CLOSED' });
        obligation.commit();
    });
    await host.settle();
    assert.equal((await host.until(region.close())).status, 'ok');
    assert.equal(await task.result, undefined);
});

test('cancel asks everything in it to stop, and done says cancelled when all has', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const log = [];
    for (let i = 0; i < 3; i++) {
        region.spawn(async (cx) => {
            try {
                await cx.sleep(1000);
            } finally {
                await cx.mask(() => cx.sleep(10 * (i + 1)));
                log.push(i);
            }
        });
    }
    await host.settle();
    region.cancel({ kind: 'USER', message: 'closing time' });
    assert.equal(region.info().state, 'Draining');
    await host.pass(15);
    assert.deepEqual(log, [0]);
    assert.equal(region.ended, false);
    const report = await host.until(region.done);
    assert.deepEqual(log, [0, 1, 2]);
    assert.deepEqual(report, { status: 'cancelled', ...CLEAN });
    assert.throws(() => region.spawn(never), { name: 'AbortError', reason: 'closing time' });
    assert.equal(region.epoch, 1);
});

test('cancel takes a text, a reason or nothing, and never throws because of what it found', async (t) => {
    const { host, rt } = virtual(t);
    for (const [given, kind, message] of [
        [undefined, 'USER', ''], ['a text', 'USER', 'a text'], [{ kind: 'RESOURCE' }, 'RESOURCE', ''],
        [{ message: 'why' }, 'USER', 'why'], [new Error('as an error'), 'USER', 'as an error'],
        [new DOMException('slow', 'TimeoutError'), 'TIMEOUT', 'slow'], [null, 'USER', ''],
        [{ message: 5 }, 'USER', '5'],
    ]) {
        const region = rt.region();
        region.spawn(never);
        await host.settle();
        region.cancel(given);
        const info = region.info();
        assert.deepEqual([info.kind, info.message], [kind, message], String(given));
        region.cancel(given);
        region.force();
        await host.until(region.done);
        region.cancel(given);
    }
});

test('a kind that is none is a TypeError that lists them, and nothing is cancelled', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn(never);
    await host.settle();
    for (const kind of ['user', 'NONE', 'PARENT', '', 5]) {
        assert.throws(() => region.cancel({ kind }), { name: 'TypeError', message: /USER.*SHUTDOWN/ },
            String(kind));
        assert.throws(() => task.cancel({ kind }), { name: 'TypeError' }, String(kind));
    }
    assert.equal(task.witness().epoch, 0);
    assert.equal(region.info().state, 'Open');
});

test('regions nest: a parent waits for its children, and a cancel goes all the way down', async (t) => {
    const { host, rt } = virtual(t);
    const order = [];
    const outer = rt.region({ name: 'outer' });
    const inner = outer.region({ name: 'inner' });
    assert.equal(inner.parent, outer);
    assert.equal(outer.parent, rt.root);
    assert.ok(inner instanceof Region);
    inner.spawn(async (cx) => {
        await cx.sleep(20);
        order.push('inner task');
    });
    inner.done.then(() => order.push('inner'));
    const joined = outer.join().then(() => order.push('outer'));
    await host.pass(10);
    assert.equal(outer.info().children, 1);
    inner.close();
    await host.until(joined);
    assert.deepEqual(order, ['inner task', 'inner', 'outer']);
});

test('a cancel of a child leaves its parent and its siblings alone', async (t) => {
    const { host, rt } = virtual(t);
    const outer = rt.region();
    const [one, two] = [outer.region(), outer.region()];
    const kept = [two.spawn(never), outer.spawn(never)];
    one.spawn((cx) => cx.sleep(1000));
    await host.settle();
    one.cancel('only this one');
    assert.equal((await host.until(one.done)).status, 'cancelled');
    for (const task of kept) assert.equal(task.witness().epoch, 0);
    assert.equal(outer.info().state, 'Open');
});

test('cx.region: what a task leaves open when it returns is cancelled and waited for', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    let own;
    const task = rt.region().spawn(async (cx) => {
        own = cx.region({ name: 'own' });
        own.spawn(async (c) => {
            try {
                await c.sleep(1000);
            } finally {
                await c.mask(() => c.sleep(5));
                log.push('drained');
            }
        });
        await cx.sleep(5);
        log.push('returns');
        return 'value';
    });
    task.result.then(() => log.push('ended'));
    await host.pass(20);
    assert.deepEqual(log, ['returns', 'drained', 'ended']);
    assert.equal(await task.result, 'value');
    assert.equal((await own.done).status, 'cancelled');
});

test('cx.region: awaiting a join is how a task waits for its own', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(async (cx) => {
        const own = cx.region();
        const parts = [1, 2, 3].map((n) => own.spawn(async (c) => {
            await c.sleep(n);
            return n * n;
        }));
        await own.join();
        return Promise.all(parts.map(({ result }) => result));
    });
    await host.finish();
    assert.deepEqual(await task.result, [1, 4, 9]);
});

test('a region times out as a whole, with TIMEOUT', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region({ timeout: 50 });
    const task = region.spawn((cx) => cx.sleep(1000));
    await host.pass(40);
    assert.equal(task.ended, false);
    await host.pass(20);
    await assert.rejects(task.result, { severity: 'urgent' });
    assert.equal((await region.done).status, 'cancelled');
});

test('info says the state, what it was told and what lives in it', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    region.region();
    region.spawn(async (cx) => {
        cx.reserve('io');
        await never();
    });
    await host.settle();
    const { deadline, failed, ...info } = region.info();
    assert.deepEqual(info, {
        status: 'EBB_OK', state: 'Open', kind: 'NONE', severity: 'none', epoch: 0, tasks: 1, children: 1,
        obligations: 1, abandoned: 0, leaked: 0, message: '',
    });
    assert.deepEqual([typeof deadline, failed], ['bigint', 0n]);
    assert.equal(region.epoch, 0);
    region.cancel({ kind: 'SHUTDOWN', message: 'bye' });
    assert.equal(region.epoch, 1);
    const told = region.info();
    assert.deepEqual([told.kind, told.severity, told.message], ['SHUTDOWN', 'forced', 'bye']);
});

test('the root is a region as any other: cancelled, closed or joined, its done settles', async (t) => {
    for (const verb of ['cancel', 'close', 'join', 'force']) {
        const { host, rt } = virtual(t);
        rt.root.spawn((cx) => cx.sleep(5));
        await host.settle();
        rt.root[verb]();
        const { status } = await host.until(rt.root.done);
        assert.equal(status, verb === 'close' || verb === 'join' ? 'ok' : 'cancelled', verb);
        assert.equal(rt.root.ended, true);
    }
});

test('the report of the root names what was left, too', async (t) => {
    const { host, rt } = virtual(t);
    rt.root.spawn((cx) => void cx.reserve('lease'), { name: 'leaky' });
    rt.root.spawn(never, { name: 'stubborn' });
    await host.settle();
    rt.root.force();
    const report = await host.until(rt.close());
    assert.deepEqual(report.leaked.map(({ site }) => site), ['leaky: lease']);
    assert.deepEqual(report.abandoned.map(({ site }) => site), ['stubborn']);
});

test('close of a runtime waits for everything, twice is once, and then nothing is admitted', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn((cx) => cx.sleep(50));
    await host.settle();
    const closed = rt.close();
    assert.equal(rt.close(), closed);
    assert.throws(() => region.spawn(never), { code: 'EBB_ERR_CLOSED' });
    assert.throws(() => rt.region(), { code: 'EBB_ERR_CLOSED' });
    await host.until(closed);
    assert.equal(task.ended, true);
    assert.equal(rt.stats().tasks, 0);
    assert.deepEqual([host.microtasks.length, host.timers.size], [0, 0]);
    assert.throws(() => rt.region(), { code: 'EBB_ERR_CLOSED' });
});

test('a run of everything leaves the kernel as it was', async (t) => {
    const { host, rt } = virtual(t);
    const before = rt.stats();
    for (let i = 0; i < 20; i++) {
        const region = rt.region({ timeout: i });
        region.spawn((cx) => cx.sleep(i));
        region.region().spawn((cx) => cx.mask(() => cx.sleep(5)));
        await host.pass(3);
        if (i % 2) region.cancel();
        await host.until(region.join());
    }
    const { tasks, regions, obligations, timers, runnable } = rt.stats();
    assert.deepEqual({ tasks, regions, obligations, timers, runnable }, {
        tasks: before.tasks, regions: before.regions, obligations: 0, timers: 0, runnable: 0,
    });
});

test('reason() says why a region is cancelled, as the error that its tasks get', async (t) => {
    const { host, rt } = virtual(t);
    const controller = new AbortController();
    const outer = rt.region({ signal: controller.signal });
    const inner = outer.region();
    assert.deepEqual([outer.reason(), inner.reason()], [undefined, undefined]);
    const task = inner.spawn(never);
    await host.settle();
    const cause = new DOMException('too slow', 'TimeoutError');
    controller.abort(cause);
    const reasons = [outer.reason(), inner.reason(), task.cx.reason()];
    assert.deepEqual(reasons.map(({ kind }) => kind), ['TIMEOUT', 'PARENT', 'PARENT']);
    for (const error of reasons) {
        assert.ok(error instanceof Cancelled);
        assert.deepEqual([error.severity, error.reason, error.cause], ['urgent', 'too slow', cause]);
    }
});

test('rt.cancel asks everything to stop, and rt.close waits for it', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().region().spawn((cx) => cx.sleep(1e9));
    await host.settle();
    rt.cancel({ kind: 'SHUTDOWN', message: 'bye' });
    await host.until(rt.close());
    await assert.rejects(task.result, { severity: 'forced', reason: 'bye' });
});

test('an error that something is cancelled with is the cause of what follows', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn((cx) => cx.sleep(1000));
    await host.settle();
    const error = new RangeError('the database is gone');
    region.cancel(error);
    await host.settle();
    const told = await task.result.catch((each) => each);
    assert.deepEqual([told.reason, told.cause], ['the database is gone', error]);
});

test('options and reasons with a name that is none are TypeErrors that say it', async (t) => {
    const { rt } = virtual(t);
    const region = rt.region();
    for (const call of [
        () => rt.region({ timeOut: 5 }), () => region.spawn(never, { retries: 1 }),
        () => rt.region({ polls: 3 }), () => region.cancel({ reason: 'x' }),
    ]) assert.throws(call, { name: 'TypeError', message: /timeOut|retries|polls|reason/ }, String(call));
    assert.equal(region.info().state, 'Open');
});

test('a deep tree is cancelled in a number of calls that grows as its depth does', async (t) => {
    const { host, rt } = virtual(t);
    const callsFor = async (depth) => {
        const top = rt.region();
        let inner = top;
        for (let i = 0; i < depth; i++) inner = inner.region();
        inner.spawn((cx) => cx.sleep(1e9));
        await host.settle();
        let calls = 0;
        rt.regionInfo = (id) => {
            calls += 1;
            return Object.getPrototypeOf(rt).regionInfo.call(rt, id);
        };
        top.cancel({ kind: 'TIMEOUT' });
        await host.until(top.done);
        delete rt.regionInfo;
        assert.equal(inner.reason().name, 'TimeoutError');
        return calls;
    };
    const [few, many] = [await callsFor(100), await callsFor(400)];
    assert.ok(many <= 5 * few, `${few} calls for 100 regions, ${many} for 400`);
});
