import assert from 'node:assert/strict';
import test from 'node:test';

import { CLEAN } from './contract.js';
import { virtual } from './virtual-host.js';

const never = () => new Promise(() => {});

test('finalizers run last added first, one after the other, async ones to their end', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const region = rt.region();
    const task = region.spawn(async (cx) => {
        for (const n of [1, 2, 3]) {
            cx.defer(async () => {
                log.push(`${n} begins`);
                await cx.sleep(10);
                log.push(`${n} ends`);
            });
        }
        log.push('returns');
        return 'value';
    });
    task.result.then(() => log.push('ended'));
    await host.finish();
    const expected = ['returns', '3 begins', '3 ends', '2 begins', '2 ends', '1 begins', '1 ends', 'ended'];
    assert.deepEqual(log, expected);
    assert.equal(await task.result, 'value');
});

for (const [how, end] of Object.entries({
    'it returns': () => 'x',
    'it throws': () => {
        throw new Error('thrown');
    },
    'it is cancelled': async (cx) => {
        cx.task.cancel('stop');
        cx.checkpoint();
    },
    'it is abandoned': async (cx) => {
        cx.task.force();
        await never();
    },
})) {
    test(`finalizers run once each, when ${how}`, async (t) => {
        const { host, rt } = virtual(t);
        const region = rt.region();
        region.done.catch(() => {});
        let ran = 0;
        const task = region.spawn(async (cx) => {
            cx.defer(() => ran++);
            cx.defer(() => cx.sleep(1).then(() => ran++));
            return end(cx);
        });
        await host.finish();
        assert.equal(task.ended, true);
        assert.equal(ran, 2);
        const done = rt.events().filter(({ type }) => type === 'finalizer_done');
        assert.equal(done.length, 2);
    });
}

test('a finalizer is masked: a cancel does not cut it, and it is not told of one', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const task = rt.region().spawn(async (cx) => {
        cx.defer(async () => {
            await cx.sleep(10);
            log.push(cx.cancelled, rt.info(task.id).mask);
            cx.checkpoint();
            log.push('all of it ran');
        });
        await cx.sleep(1000);
    });
    await host.settle();
    task.cancel('stop');
    await host.pass(5);
    task.cancel({ kind: 'TIMEOUT', message: 'now' });
    await host.pass(10);
    assert.deepEqual(log, [false, 1, 'all of it ran']);
    assert.equal(task.ended, true);
});

test('a finalizer may not add another: it is refused by name, and the others run', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    rt.region().spawn((cx) => {
        cx.defer(() => log.push('first added'));
        cx.defer(() => {
            assert.throws(() => cx.defer(() => log.push('never')), { code: 'EBB_ERR_CLOSED' });
            log.push('second added');
        });
    });
    await host.settle();
    assert.deepEqual(log, ['second added', 'first added']);
    assert.equal(rt.stats().tasks, 0);
});

test('waits that the function left behind end when it settles', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const task = rt.region().spawn((cx) => {
        cx.sleep(1000).catch((error) => log.push(`left behind: ${error.code}`));
        cx.defer(() => log.push('finalizer'));
    });
    await host.finish();
    assert.deepEqual(log.sort(), ['finalizer', 'left behind: EBB_ERR_STALE']);
    assert.equal(task.ended, true);
    assert.equal(rt.stats().timers, 0);
});

test('the phase is Finalizing while they run after a cancel, and the end comes after the last', async (t) => {
    const { host, rt } = virtual(t);
    const phases = [];
    const task = rt.region().spawn(async (cx) => {
        cx.defer(() => phases.push(task.witness().phase));
        cx.defer(() => cx.sleep(5));
        await cx.sleep(1000);
    });
    await host.settle();
    task.cancel('stop');
    await host.finish();
    assert.deepEqual(phases, ['Finalizing']);
    const types = rt.events().filter(({ taskId }) => taskId === task.id).map(({ type }) => type);
    assert.ok(types.lastIndexOf('finalizer_done') < types.indexOf('finalized'));
});

test('cleanup regions: only a task under request or a finalizer may open one', async (t) => {
    const { host, rt } = virtual(t);
    const refusal = { name: 'EbbError', code: 'EBB_ERR_NOT_CLEANING' };
    assert.throws(() => rt.region({ cleanup: true }), refusal);
    const region = rt.region();
    const task = region.spawn(async (cx) => {
        assert.throws(() => cx.region({ cleanup: true }), refusal);
        await cx.sleep(1);
        return 'went on';
    });
    await host.finish();
    assert.equal(await task.result, 'went on');
});

test('cleanup regions: work is admitted in them while all around is cancelled', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const log = [];
    region.spawn(async (cx) => {
        try {
            await cx.sleep(1000);
        } finally {
            assert.throws(() => cx.region(), { name: 'AbortError', kind: 'USER' });
            const goodbye = cx.region({ cleanup: true, name: 'goodbye' });
            goodbye.spawn(async (c) => {
                c.reserve('io').commit();
                await c.sleep(10);
                log.push(`said goodbye, cancelled: ${c.cancelled}`);
            });
            await goodbye.join();
            log.push('joined');
        }
    });
    await host.settle();
    region.cancel('stop');
    const report = await host.until(region.done);
    assert.deepEqual(log, ['said goodbye, cancelled: false', 'joined']);
    assert.deepEqual(report, { status: 'cancelled', ...CLEAN });
});

test('cleanup regions: a finalizer has them too, and force reaches into them', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const log = [];
    region.spawn(async (cx) => {
        cx.defer(async () => {
            const scope = cx.region({ cleanup: true });
            scope.spawn((c) => c.sleep(1000).catch((error) => {
                log.push('the work in it was told');
                throw error;
            }));
            await scope.join();
            log.push('the finalizer went on');
        });
        await cx.sleep(1000);
    });
    await host.settle();
    region.cancel('stop');
    await host.pass(5);
    assert.deepEqual(log, []);
    region.force();
    await host.until(region.done);
    assert.deepEqual(log, ['the work in it was told', 'the finalizer went on']);
    assert.equal(rt.stats().tasks, 0);
});

test('cleanup regions: their budget is what is left of their owner\'s', async (t) => {
    const { host, rt } = virtual(t, { cleanup: { polite: { ms: 100 } } });
    const region = rt.region();
    region.spawn(async (cx) => {
        try {
            await cx.sleep(1000);
        } finally {
            const scope = cx.region({ cleanup: true });
            scope.spawn(never, { name: 'endless goodbye' });
            await cx.mask(() => cx.wait(scope.join()));
        }
    });
    await host.settle();
    region.cancel('stop');
    await host.until(region.done);
    assert.ok(host.time <= 200, `${host.time} ms`);
    assert.equal(rt.stats().abandoned, 1);
});
