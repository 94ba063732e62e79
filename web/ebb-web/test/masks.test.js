import assert from 'node:assert/strict';
import test from 'node:test';

import { Cancelled } from '../index.js';
import { virtual } from './virtual-host.js';

/** Masks so deep and then calls `fn`. */
function masked(cx, depth, fn) {
    return depth === 0 ? fn() : cx.mask(() => masked(cx, depth - 1, fn));
}

test('B3: a mask holds a request back across awaits, of cx and of others', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const task = rt.region().spawn(async (cx) => {
        await cx.mask(async () => {
            await cx.sleep(10);
            log.push(task.witness().phase, cx.cancelled, cx.signal.aborted);
            cx.checkpoint();
            await Promise.resolve();
            await cx.wait(Promise.resolve());
            await cx.yield();
            log.push('all of the section ran');
        });
        log.push('unmasked', task.witness().phase);
        cx.checkpoint();
        log.push('not reached');
    });
    await host.settle();
    task.cancel('stop');
    await host.pass(5);
    assert.equal(task.witness().phase, 'CancelRequested');
    assert.equal(task.cx.signal.aborted, false);
    await host.pass(10);
    assert.deepEqual(log, ['CancelRequested', false, false, 'all of the section ran', 'unmasked',
        'CancelRequested']);
    await assert.rejects(task.result, Cancelled);
});

test('B3: while it is masked nothing is acknowledged, by events', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn((cx) => cx.mask(() => cx.sleep(10)));
    await host.settle();
    task.cancel('stop');
    await host.finish();
    const mine = rt.events().filter(({ taskId }) => taskId === task.id).map(({ type }) => type);
    assert.ok(mine.includes('masked') && mine.includes('unmasked'));
    assert.ok(!mine.includes('cancel_acked'), mine.join(' '));
    assert.equal(await task.result, undefined,
        'it has returned without an acknowledgement: its work is done');
});

test('B3: the signal does not abort while masked; it aborts in the turn after the unmask', async (t) => {
    const { host, rt } = virtual(t);
    let leave;
    const left = new Promise((resolve) => {
        leave = resolve;
    });
    const aborted = [];
    const task = rt.region().spawn(async (cx) => {
        cx.signal.addEventListener('abort', () => aborted.push(task.witness().phase));
        await cx.mask(() => left);
        aborted.push(`unmasked, aborted: ${cx.signal.aborted}`);
        await new Promise(() => {});
    });
    await host.settle();
    task.cancel('stop');
    rt.wake(task.id);
    await host.pass(5);
    assert.deepEqual(aborted, []);
    leave();
    await host.settle();
    assert.deepEqual(aborted, ['unmasked, aborted: false', 'CancelRequested']);
});

test('B3: a wait that begins in a mask and outlives it ends when the mask does', async (t) => {
    const { host, rt } = virtual(t);
    let slept;
    const task = rt.region().spawn(async (cx) => {
        await cx.mask(async () => {
            slept = cx.sleep(1000).then(() => 'slept', (error) => error.kind);
            await cx.sleep(10);
        });
        await slept;
    });
    await host.settle();
    task.cancel('stop');
    await host.pass(9);
    assert.equal(rt.stats().timers, 2);
    await host.pass(2);
    assert.equal(await slept, 'USER');
    assert.equal(rt.stats().timers, 0);
});

test('B3: masks nest to 32, and the 33rd is an error by name', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region({ collect: true });
    region.done.catch(() => {});
    const deepest = region.spawn((cx) => masked(cx, 32, () => rt.info(cx.task.id).mask));
    const tooDeep = region.spawn((cx) => masked(cx, 33, () => assert.fail('not reached')));
    await host.settle();
    assert.equal(await deepest.result, 32);
    await assert.rejects(tooDeep.result, { name: 'EbbError', code: 'EBB_ERR_MASK_DEPTH', message: /32/ });
    await assert.rejects(host.until(region.join()), { code: 'EBB_ERR_MASK_DEPTH' });
});

test('B3: after the 33rd was refused the other 32 still unmask one by one', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(async (cx) => {
        const depths = [];
        await masked(cx, 32, async () => {
            await cx.mask(() => {}).catch((error) => depths.push(error.code));
            depths.push(rt.info(cx.task.id).mask);
        });
        return [...depths, rt.info(cx.task.id).mask];
    });
    await host.settle();
    assert.deepEqual(await task.result, ['EBB_ERR_MASK_DEPTH', 32, 0]);
});

test('B3: only the outermost unmask lets the next checkpoint observe', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const task = rt.region().spawn(async (cx) => {
        await cx.mask(async () => {
            await cx.mask(() => cx.sleep(10));
            cx.checkpoint();
            log.push(`inner unmasked: ${rt.info(cx.task.id).mask}`);
            await cx.sleep(10);
            log.push('still masked');
        });
        log.push('unmasked');
        await cx.sleep(10);
        log.push('not reached');
    });
    await host.settle();
    task.cancel('stop');
    await host.finish();
    assert.deepEqual(log, ['inner unmasked: 1', 'still masked', 'unmasked']);
    await assert.rejects(task.result, Cancelled);
});

test('B3: a section that throws is unmasked, and what it threw goes on', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(async (cx) => {
        const caught = await cx.mask(() => {
            throw new RangeError('inside');
        }).catch((error) => error.message);
        return [caught, rt.info(cx.task.id).mask];
    });
    await host.settle();
    assert.deepEqual(await task.result, ['inside', 0]);
});

test('B3: two sections at a time are two masks: the request waits for the last of them', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(async (cx) => {
        await Promise.all([cx.mask(() => cx.sleep(10)), cx.mask(() => cx.sleep(30))]);
        cx.checkpoint();
    });
    await host.settle();
    task.cancel('stop');
    await host.pass(20);
    assert.equal(rt.info(task.id).mask, 1);
    assert.equal(task.witness().phase, 'CancelRequested');
    await host.pass(20);
    await assert.rejects(task.result, Cancelled);
});

test('B3: at the deadline of its budget a masked task is told all the same', async (t) => {
    const { host, rt } = virtual(t, { cleanup: { polite: { ms: 100 } } });
    const log = [];
    const task = rt.region().spawn((cx) => cx.mask(async () => {
        await cx.sleep(10000).catch((error) => log.push(error.kind, cx.signal.aborted));
    }));
    await host.settle();
    task.cancel('stop');
    await host.pass(70);
    assert.deepEqual(log, []);
    await host.pass(40);
    assert.deepEqual(log, ['USER', true]);
    assert.equal(task.ended, true);
    assert.equal(rt.stats().abandoned, 0);
});

test('B3: a masked section that outlives its task ends with what it returns', async (t) => {
    const { host, rt } = virtual(t);
    let open;
    let section;
    const region = rt.region();
    region.spawn(async (cx) => {
        section = cx.mask(() => new Promise((resolve) => {
            open = resolve;
        }));
        await section;
    });
    await host.settle();
    region.force();
    await host.until(region.done);
    open('late, and nobody\'s business');
    assert.equal(await section, 'late, and nobody\'s business');
});
