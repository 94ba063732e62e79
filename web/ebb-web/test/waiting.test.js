import assert from 'node:assert/strict';
import test from 'node:test';

import { Cancelled, Runtime } from '../index.js';
import { counted } from './counted-listeners.js';
import { end, virtual, VirtualHost } from './virtual-host.js';

const never = () => new Promise(() => {});

test('cx.sleep sleeps so long, not less, several at a time too', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const task = rt.region().spawn(async (cx) => {
        await Promise.all([30, 10, 20].map(async (ms) => {
            await cx.sleep(ms);
            log.push([ms, host.time]);
        }));
        await cx.sleep(0);
        await cx.sleep(0.25);
        return host.time;
    });
    await host.finish();
    for (const [ms, at] of log) assert.ok(at >= ms && at < ms + 2, `${ms} ms ended at ${at}`);
    assert.deepEqual(log.map(([ms]) => ms), [10, 20, 30]);
    assert.ok(await task.result < 34);
    assert.equal(rt.stats().timers, 0);
});

test('cx.sleep uses one timer of the host at a time, the next that is due', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    for (let i = 0; i < 200; i++) region.spawn((cx) => cx.sleep(100 + i));
    await host.settle();
    assert.equal(host.timers.size, 1);
    const [{ ms }] = host.timers.values();
    assert.ok(ms >= 99 && ms <= 101, `${ms}`);
    region.spawn((cx) => cx.sleep(5));
    await host.settle();
    assert.equal(host.timers.size, 1);
    assert.ok([...host.timers.values()][0].ms <= 6);
    region.cancel();
    await host.settle();
    assert.equal(host.timers.size, 0);
});

test('cx.yield lets the others run first', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const region = rt.region();
    for (const name of ['a', 'b', 'c']) {
        region.spawn(async (cx) => {
            for (let i = 0; i < 3; i++) {
                log.push(`${name}${i}`);
                await cx.yield();
            }
        });
    }
    await host.finish();
    assert.deepEqual(log, ['a0', 'b0', 'c0', 'a1', 'b1', 'c1', 'a2', 'b2', 'c2']);
});

test('cx.wait gives what a promise gives, value, failure or no promise at all', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(async (cx) => [
        await cx.wait(Promise.resolve('value')), await cx.wait('plain'), await cx.wait(undefined),
        await cx.wait({ then: (resolve) => resolve('thenable') }),
        await cx.wait(Promise.reject(new RangeError('failed'))).catch((error) => error.message),
    ]);
    await host.settle();
    assert.deepEqual(await task.result, ['value', 'plain', undefined, 'thenable', 'failed']);
});

test('cx.wait: what is waited for goes on after a cancel, and its failure is nobody\'s', async (t) => {
    const { host, rt } = virtual(t);
    let fail;
    const slow = new Promise((_, reject) => {
        fail = reject;
    });
    const task = rt.region().spawn((cx) => cx.wait(slow));
    await host.settle();
    task.cancel('stop');
    await host.settle();
    await assert.rejects(task.result, Cancelled);
    fail(new Error('too late for anybody'));
    await host.settle();
});

test('cx.wait: a promise that is handed over is taken care of, even by a cancelled task', async (t) => {
    const { host, rt } = virtual(t);
    const failing = (message) => new Promise((_, reject) => {
        setTimeout(() => reject(new Error(message)), 1);
    });
    const task = rt.region().spawn((cx) => cx.wait(failing('of a cancelled task')));
    task.cancel('before it began');
    await host.settle();
    await assert.rejects(task.result, Cancelled);
    await assert.rejects(host.until(task.cx.wait(failing('of an ended task'))), { code: 'EBB_ERR_STALE' });
    await new Promise((resolve) => {
        setTimeout(resolve, 10);
    });
});

test('cx.once gives the first event, and its listener is gone then', async (t) => {
    const { host, rt } = virtual(t);
    const target = counted(new EventTarget());
    const task = rt.region().spawn((cx) => cx.once(target, 'ready'));
    await host.settle();
    assert.equal(target.listenerCount(), 1);
    const [first, second] = [new Event('ready'), new Event('ready')];
    target.dispatchEvent(new Event('other'));
    target.dispatchEvent(first);
    target.dispatchEvent(second);
    await host.settle();
    assert.equal(await task.result, first);
    assert.equal(target.listenerCount(), 0);
});

test('cx.on listens until the task settles, or until it is stopped', async (t) => {
    const { host, rt } = virtual(t);
    const target = counted(new EventTarget());
    const heard = [];
    const task = rt.region().spawn(async (cx) => {
        const stop = cx.on(target, 'a', () => heard.push('a'));
        cx.on(target, 'b', () => heard.push('b'));
        await cx.sleep(10);
        stop();
        stop();
        await cx.sleep(10);
    });
    await host.pass(5);
    assert.equal(target.listenerCount(), 2);
    for (const type of ['a', 'b']) target.dispatchEvent(new Event(type));
    await host.pass(10);
    for (const type of ['a', 'b']) target.dispatchEvent(new Event(type));
    await host.pass(10);
    assert.equal(task.ended, true);
    for (const type of ['a', 'b']) target.dispatchEvent(new Event(type));
    assert.deepEqual(heard, ['a', 'b', 'b']);
    assert.equal(target.listenerCount(), 0);
});

test('cx.on is gone when the function settles, not when its finalizers have', async (t) => {
    const { host, rt } = virtual(t);
    const target = counted(new EventTarget());
    rt.region().spawn((cx) => {
        cx.on(target, 'x', () => {});
        cx.defer(() => {
            assert.equal(target.listenerCount(), 0);
            return cx.sleep(10);
        });
    });
    await host.pass(5);
    assert.equal(target.listenerCount(), 0);
});

/* A scenario for each kind of wait: the wait itself, and what lets it end well. */
const WAITS = {
    'cx.sleep': { wait: (cx) => cx.sleep(10), go: () => {} },
    'cx.yield': { wait: (cx) => cx.yield(), go: () => {} },
    'cx.wait': { wait: (cx, gate) => cx.wait(gate.promise), go: (gate) => gate.open() },
    'cx.once': { wait: (cx, gate) => cx.once(gate.target, 'go'),
        go: (gate) => gate.target.dispatchEvent(new Event('go')) },
    'cx.fetch': { wait: (cx, gate) => cx.fetch(gate), go: (gate) => gate.open() },
    'cx.mask': { wait: (cx, gate) => cx.mask(() => cx.wait(gate.promise)), go: (gate) => gate.open() },
};

function gate() {
    const made = { target: counted(new EventTarget()) };
    made.promise = new Promise((resolve) => {
        made.open = resolve;
    });
    return made;
}

/** What a test's fetch does: it takes a gate in place of an address. */
function fetchOf(input, { signal }) {
    return new Promise((resolve, reject) => {
        input.promise.then(() => resolve('response'));
        signal.addEventListener('abort', () => reject(signal.reason));
    });
}

/** Runs two waits and a cleanup, with a cancel after so many steps of the host; returns how it ended. */
async function runWithCancel({ wait, go }, after, how) {
    const host = new VirtualHost();
    const rt = new Runtime({ ...host.capabilities, fetch: fetchOf });
    const [first, second] = [gate(), gate()];
    const log = [];
    const region = rt.region();
    const task = region.spawn(async (cx) => {
        try {
            await wait(cx, first);
            log.push('first');
            await wait(cx, second);
            log.push('second');
            cx.checkpoint();
            return 'whole';
        } finally {
            log.push('cleaned up');
        }
    });
    task.result.catch(() => {});
    let steps = 0;
    const stepped = async (act) => {
        act?.();
        for (; await host.step();) if (++steps === after) how(task, region);
        if (++steps === after) how(task, region);
    };
    await stepped();
    await stepped(() => go(first));
    await host.pass(11);
    await stepped();
    await stepped(() => go(second));
    await host.pass(11);
    await stepped();
    const outcome = await host.until(task.result).catch((error) => error);
    assert.equal(first.target.listenerCount() + second.target.listenerCount(), 0, 'no listener stays');
    assert.equal(rt.stats().timers, 0, 'no timer stays');
    await end(rt, () => host.finish()); /* now, and not with the test: a page has room for 120 of them */
    return { outcome, log, steps };
}

for (const [name, scenario] of Object.entries(WAITS)) {
    for (const [verb, how] of Object.entries({
        cancel: (task) => task.cancel('now'), 'cancel of its region': (task, region) => region.cancel('now'),
    })) {
        test(`${name} with a ${verb} at every point: whole or cancelled, always cleaned up`, async () => {
            const whole = await runWithCancel(scenario, Infinity, how);
            assert.deepEqual([whole.outcome, whole.log], ['whole', ['first', 'second', 'cleaned up']]);
            let cut = 0;
            for (let after = 1; after <= whole.steps; after++) {
                const { outcome, log } = await runWithCancel(scenario, after, how);
                assert.equal(log.at(-1), 'cleaned up', `after ${after} steps`);
                if (outcome === 'whole') continue;
                assert.ok(outcome instanceof Cancelled, `after ${after} steps: ${outcome}`);
                cut++;
            }
            assert.ok(cut > 0, 'some of them were cut');
        });
    }
}

test('every wait of an ended task, and every other method of its cx, is refused by name', async (t) => {
    const { host, rt } = virtual(t, { capabilities: { fetch: fetchOf } });
    const task = rt.region().spawn(() => {});
    await host.settle();
    const { cx } = task;
    const refusal = { name: 'EbbError', code: 'EBB_ERR_STALE', message: /task/ };
    const target = counted(new EventTarget());
    for (const call of [
        () => cx.checkpoint(), () => cx.reserve('ack'), () => cx.defer(() => {}), () => cx.region(),
        () => cx.on(target, 'x', () => {}),
    ]) assert.throws(call, refusal, String(call));
    for (const call of [
        () => cx.sleep(1), () => cx.yield(), () => cx.wait(1), () => cx.once(target, 'x'),
        () => cx.mask(() => {}),
        () => cx.fetch('/'),
    ]) {
        const promise = call();
        assert.ok(promise instanceof Promise, String(call));
        await assert.rejects(host.until(promise), refusal, String(call));
    }
    assert.equal(target.listenersAdded(), 0);
    assert.equal(cx.stopping, true);
    assert.equal(cx.cancelled, false);
});

test('a wait that is refused is a rejection, never a throw', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(async (cx) => {
        const kinds = [];
        for (const call of [() => cx.sleep(-1), () => cx.sleep('soon'), () => cx.once({}, 'x')]) {
            const promise = call();
            kinds.push(await promise.catch((error) => error.name));
        }
        return kinds;
    });
    await host.settle();
    assert.deepEqual(await task.result, ['TypeError', 'TypeError', 'TypeError']);
});

test('methods of cx that take a function refuse anything else', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(async (cx) => {
        assert.throws(() => cx.defer('no function'), TypeError);
        await assert.rejects(cx.mask('no function'), TypeError);
        assert.equal(rt.info(cx.task.id).mask, 0);
    });
    await host.settle();
    await task.result;
    for (const bad of [undefined, null, 'text', {}]) assert.throws(() => rt.region().spawn(bad), TypeError);
});

test('cx.yield in the first lines of a task lets run what those have spawned', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const region = rt.region();
    region.spawn(async (cx) => {
        region.spawn(() => log.push('spawned'));
        await cx.yield();
        log.push('after the yield');
    });
    await host.settle();
    assert.deepEqual(log, ['spawned', 'after the yield']);
});

for (const verb of ['close', 'join']) {
    test(`await of ${verb} of a region in the first lines of a task in it is refused, not for ever`, async (t) => {
        const { host, rt } = virtual(t);
        const refused = { code: 'EBB_ERR_INVALID', message: /region job: task stuck.* wait for itself/ };
        const outer = rt.region({ name: 'job' });
        const task = outer.region().spawn(async () => {
            await outer[verb]();
        }, { name: 'stuck' });
        await assert.rejects(host.until(task.result), refused);
        await host.until(outer.done);

        const region = rt.region({ name: 'job' });
        let error;
        region.defer(async function stuck() {
            await region.close().catch((e) => (error = e));
        });
        await host.until(region.close());
        assert.match(error.message, /task job.closer is in it/);
    });

    test(`${verb} of a region by a task in it that does not wait for it works, in silence`, async (t) => {
        const { host, rt } = virtual(t);
        const region = rt.region();
        const other = rt.region();
        const task = region.spawn(async () => {
            region[verb]();
            return (await other[verb]()).status;
        });
        const { status } = await host.until(region.done);
        assert.deepEqual([status, await task.result], ['ok', 'ok']);
    });
}
