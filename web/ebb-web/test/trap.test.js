import assert from 'node:assert/strict';
import test from 'node:test';

import { Runtime, TraceReader } from '../index.js';
import { virtual, VirtualHost } from './virtual-host.js';
import { packageFile, trapping } from './wasm-bytes.js';

const never = () => new Promise(() => {});
const TRAPPED = { name: 'EbbError', code: 'EBB_TRAPPED' };

/** A runtime in which some functions of the module do nothing but trap. */
async function fragile(t, names) {
    const module = trapping(await packageFile('ebb.wasm'), names);
    const { host, rt } = virtual(t, { module, journal: 1 << 16 });
    rt.root.done.catch(() => {});
    return { host, rt };
}

function magic(bytes) {
    return new TextDecoder().decode(bytes.subarray(0, 7));
}

test('a trap in the pump is told to everybody who waits, by name and cause', async (t) => {
    const { host, rt } = await fragile(t, ['pump']);
    const region = rt.region();
    const inner = region.region();
    const tasks = [region.spawn(never), inner.spawn(never)];
    const told = [region.done, inner.done, rt.root.done, ...tasks.map(({ result }) => result)];
    const settled = Promise.allSettled(told);
    await host.settle();
    for (const { status, reason } of await settled) {
        assert.equal(status, 'rejected');
        assert.equal(reason.code, 'EBB_TRAPPED');
        assert.ok(reason.cause instanceof WebAssembly.RuntimeError);
    }
    assert.equal(rt.crash.error.code, 'EBB_TRAPPED');
});

test('what was journaled and traced before the trap is saved, and can be read', async (t) => {
    const { host, rt } = await fragile(t, ['pump']);
    const region = rt.region({ name: 'kept' });
    region.done.catch(() => {});
    const task = region.spawn(never, { name: 'witness of the crash' });
    await host.settle();
    assert.equal(magic(rt.crash.journal), 'EBBJRNL');
    assert.ok(rt.crash.journal.length > 64 + 32);
    const events = new TraceReader(rt).push(rt.crash.trace);
    assert.ok(events.some(({ type, taskId }) => type === 'task_spawned' && taskId === task.id));
});

const CALLED = ['spawn', 'checkpoint', 'region_cancel', 'advance', 'stats', 'mask', 'reserve', 'timer_arm',
    'wake'];

for (const name of CALLED) {
    test(`a trap in ${name} discards the instance`, async (t) => {
        const { host, rt } = await fragile(t, [name]);
        const region = rt.region({ collect: true });
        region.done.catch(() => {});
        const attempts = [
            () => region.spawn(async (cx) => {
                cx.reserve('ack').commit();
                await cx.mask(() => cx.sleep(1));
                cx.task.cancel();
                cx.checkpoint();
            }),
            () => host.pass(5), () => rt.stats(), () => region.cancel('stop'), () => host.settle(),
        ];
        for (const attempt of attempts) {
            try {
                await attempt();
            } catch (error) {
                assert.equal(error.code, 'EBB_TRAPPED');
            }
        }
        assert.equal(rt.crash?.error.code, 'EBB_TRAPPED');
        await assert.rejects(region.done, TRAPPED);
    });
}

test('after a trap every later call is a clear error, or does nothing where it can not fail', async (t) => {
    const { host, rt } = await fragile(t, ['pump']);
    const region = rt.region();
    region.done.catch(() => {});
    const task = region.spawn(never);
    await host.settle();
    const { cx } = task;
    const refused = [
        () => rt.stats(), () => rt.dump(), () => rt.info(task.id),
        () => rt.witness(task.id), () => region.causes(), () => rt.regionInfo(region.id),
    ];
    for (const call of refused) assert.throws(call, TRAPPED, String(call));
    for (const call of [
        () => region.spawn(never), () => rt.region(), () => cx.checkpoint(), () => cx.reserve('ack'),
        () => cx.defer(() => {}), () => cx.region(),
    ]) {
        assert.throws(call, { name: 'EbbError' }, String(call));
    }
    for (const call of [() => cx.sleep(1), () => cx.yield(), () => cx.mask(() => {}), () => cx.wait(1)]) {
        await assert.rejects(host.until(call()), { name: 'EbbError' }, String(call));
    }
    for (const call of [
        () => task.cancel('x'), () => task.force(), () => region.cancel(), () => region.force(),
        () => rt.wake(task.id),
        () => task.witness(), () => cx.cancelled, () => cx.stopping,
    ]) call();
    await assert.rejects(region.join(), TRAPPED);
    await assert.rejects(region.close(), TRAPPED);
    await assert.rejects(rt.close(), TRAPPED);
    await assert.rejects(task.result, TRAPPED);
    assert.equal(task.ended, true);
});

test('a trap while tasks sleep and listen leaves no timer and no listener behind', async (t) => {
    const { host, rt } = await fragile(t, ['region_cancel', 'timer_disarm']);
    const region = rt.region();
    region.done.catch(() => {});
    const target = new EventTarget();
    let listeners = 0;
    const { addEventListener, removeEventListener } = target;
    target.addEventListener = (...args) => {
        listeners++;
        addEventListener.apply(target, args);
    };
    target.removeEventListener = (...args) => {
        listeners--;
        removeEventListener.apply(target, args);
    };
    const waits = [(cx) => cx.sleep(1000), (cx) => cx.once(target, 'x'), (cx) => cx.sleep(2000)];
    const tasks = waits.map((wait) => region.spawn(async (cx) => {
        cx.on(target, 'y', () => {});
        await wait(cx);
    }));
    const settled = Promise.allSettled(tasks.map(({ result }) => result));
    await host.settle();
    assert.equal(listeners, 4);
    assert.throws(() => region.cancel('stop'), TRAPPED);
    await host.finish();
    for (const { reason } of await settled) assert.equal(reason.code, 'EBB_TRAPPED');
    assert.equal(listeners, 0);
    assert.equal(host.timers.size, 0);
});

test('a memory that somebody has overwritten is found out, and the rest of the page goes on', async (t) => {
    const { host, rt } = virtual(t);
    rt.root.done.catch(() => {});
    const region = rt.region();
    region.done.catch(() => {});
    const task = region.spawn((cx) => cx.sleep(10));
    const result = assert.rejects(task.result, TRAPPED);
    await host.settle();
    rt.abi.bytes(0, rt.abi.memoryBytes).fill(0xff);
    assert.throws(() => region.spawn(never), TRAPPED);
    await host.settle();
    await result;
    const other = virtual(t);
    const fine = other.rt.region().spawn(() => 'fine');
    await other.host.settle();
    assert.equal(await fine.result, 'fine');
});

test('a module that traps as it starts is an error of the constructor', async () => {
    const module = trapping(await packageFile('ebb.wasm'), ['start']);
    assert.throws(() => new Runtime(new VirtualHost().capabilities, { module }), TRAPPED);
});

test('code that runs out of stack inside a call is an error that is told', async (t) => {
    const { host, rt } = virtual(t);
    rt.root.done.catch(() => {});
    const region = rt.region();
    region.done.catch(() => {});
    const task = region.spawn((cx) => {
        const deeper = () => {
            cx.checkpoint();
            deeper();
        };
        deeper();
    });
    const settled = task.result.catch((error) => error);
    await host.settle();
    const error = await settled;
    assert.ok(error instanceof RangeError || error.code === 'EBB_TRAPPED', String(error));
});
