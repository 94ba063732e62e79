import assert from 'node:assert/strict';
import test from 'node:test';

import { virtual } from './virtual-host.js';

const never = () => new Promise(() => {});

/** In which batch each task was polled, in order: 'turn.batch name'. */
function polls(rt, names) {
    return rt.events().filter(({ type }) => type === 'task_polled')
        .map((e) => `${e.hostTurnId}.${e.microtaskBatchId} ${names.get(e.taskId) ?? '?'}`);
}

/** How many polls each task had in each batch. */
function perBatch(rt) {
    const counts = new Map();
    for (const e of rt.events().filter(({ type }) => type === 'task_polled')) {
        const key = `${e.hostTurnId}.${e.microtaskBatchId} ${e.taskId}`;
        counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return counts;
}

test('B1: spawn has returned its task, with an id, before its function is called', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const seen = [];
    const task = region.spawn((cx) => {
        seen.push(cx.task === task, typeof task.id);
    });
    assert.deepEqual(seen, []);
    assert.equal(rt.stats().polls, 0);
    await host.settle();
    assert.deepEqual(seen, [true, 'bigint']);
});

test('B1: nothing that a host calls polls: spawn, wake, cancel, force, close, join, an abort', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const controller = new AbortController();
    const tasks = Array.from({ length: 3 }, () => region.spawn(never, { signal: controller.signal }));
    await host.settle();
    const { polls: before } = rt.stats();
    const calls = [
        () => region.spawn(never), () => rt.wake(tasks[0].id), () => tasks[0].cancel('stop'),
        () => controller.abort(), () => tasks[1].force(), () => rt.region(),
        () => region.join().catch(() => {}),
        () => region.close().catch(() => {}), () => region.cancel('stop'), () => region.force(),
    ];
    for (const call of calls) {
        call();
        assert.equal(rt.stats().polls, before, String(call));
    }
    await host.settle();
    assert.ok(rt.stats().polls > before);
});

test('B1: a task that spawns, wakes and cancels in the middle of its own poll runs nobody', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const ran = [];
    const parked = region.spawn(async (cx) => {
        cx.signal.addEventListener('abort', () => ran.push('abort listener'));
        await never();
    });
    await host.settle();
    region.spawn(() => {
        region.spawn(() => ran.push('spawned'));
        rt.wake(parked.id);
        parked.cancel('stop');
        region.region().cancel();
        assert.deepEqual(ran, []);
        ran.push('the poll is over');
    });
    await host.settle();
    assert.deepEqual(ran.sort(), ['abort listener', 'spawned', 'the poll is over']);
    assert.equal(rt.stats().illegal, 0);
});

test('B1: what is spawned or woken inside a poll waits for the next batch', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const parked = region.spawn(never);
    await host.settle();
    rt.events();
    let inner;
    const outer = region.spawn(() => {
        rt.wake(parked.id);
        inner = region.spawn(() => {});
    });
    await host.settle();
    const names = new Map([[parked.id, 'parked'], [outer.id, 'outer'], [inner.id, 'inner']]);
    const order = polls(rt, names);
    const batchOf = (name) => order.find((line) => line.endsWith(` ${name}`)).split(' ')[0];
    assert.notEqual(batchOf('parked'), batchOf('outer'));
    assert.notEqual(batchOf('inner'), batchOf('outer'));
    const at = (name) => order.findIndex((line) => line.endsWith(name));
    assert.ok(at('outer') < at('inner'));
});

test('B1: a wake of itself inside its poll, in the cancel lane, waits for the next batch too', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const ready = Array.from({ length: 30 }, () => region.spawn(never));
    const task = region.spawn(never);
    await host.settle();
    rt.events();
    task.cx.signal.addEventListener('abort', () => rt.wake(task.id));
    task.cancel('stop');
    ready.forEach(({ id }) => rt.wake(id));
    await host.settle();
    for (const [who, n] of perBatch(rt)) assert.equal(n, 1, who);
});

test('B1: a batch polls each task once, whatever the tasks do', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const stubborn = rt.region();
    for (let i = 0; i < 3; i++) stubborn.spawn(never);
    await host.settle();
    for (let i = 0; i < 20; i++) {
        region.spawn(async (cx) => {
            for (let k = 0; k < 20; k++) await cx.yield();
        });
    }
    rt.events();
    stubborn.force();
    await host.settle();
    for (const [who, n] of perBatch(rt)) assert.equal(n, 1, who);
});

test('B1: the pump is not entered from an abort listener, a hook or a finalizer', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    let depth = 0;
    let worst = 0;
    const inside = () => {
        depth++;
        worst = Math.max(worst, depth);
        rt.region().spawn(() => {});
        rt.stats();
        depth--;
    };
    const task = region.spawn(async (cx) => {
        cx.signal.addEventListener('abort', inside);
        cx.reserve('permit', inside);
        cx.defer(inside);
        await cx.sleep(100);
    });
    await host.settle();
    task.cancel('stop');
    for (let i = 0; i < 50; i++) await host.step();
    assert.equal(worst, 1);
    assert.equal(rt.stats().leaks, 1);
});

test('B1: the first batch is a microtask, and so are those that follow in a short run', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn(async (cx) => {
        for (let i = 0; i < 10; i++) await cx.yield();
        return 'done';
    });
    assert.equal(host.microtasks.length, 1);
    await host.runMicrotasks();
    assert.equal(await task.result, 'done');
});

test('B1: when the time of a turn is used up the next batch is a message', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    let rounds = 0;
    region.spawn(async (cx) => {
        for (;;) {
            host.time += 1;
            rounds++;
            await cx.yield();
        }
    });
    await host.runMicrotasks();
    assert.ok(rounds >= 2 && rounds <= 16, `${rounds} rounds of 1 ms in one turn`);
    assert.ok(host.messages.length > 0);
    const before = rounds;
    await host.step();
    assert.ok(rounds > before, 'the message goes on');
});

test('B1: with a clock that stands still so many polls end a turn as well', async (t) => {
    const { host, rt } = virtual(t, { trace: 0 });
    const region = rt.region();
    for (let i = 0; i < 64; i++) {
        region.spawn(async (cx) => {
            for (;;) await cx.yield();
        });
    }
    const batches = await host.runMicrotasks();
    assert.ok(batches < 200, `${batches} batches of 64 polls`);
    assert.ok(rt.stats().polls <= 8192 + 64, `${rt.stats().polls} polls in one turn`);
    assert.ok(host.messages.length > 0);
});

test('B1: many runnable tasks do not make one batch that is longer than a turn', async (t) => {
    const { host, rt } = virtual(t, { trace: 0 });
    const region = rt.region();
    let ran = 0;
    const slow = () => {
        host.time += 1;
        ran++;
    };
    for (let i = 0; i < 500; i++) region.spawn(slow);
    await host.runMicrotasks();
    assert.ok(ran < 150, `${ran} ms in one turn`);
    await host.settle();
    assert.equal(ran, 500);
});

test('B1: each turn and each batch has its own number, and neither goes back', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    for (let i = 0; i < 3; i++) {
        region.spawn(async (cx) => {
            for (let k = 0; k < 40; k++) {
                host.time += 0.5;
                await cx.yield();
            }
            await cx.sleep(10);
        });
    }
    await host.finish();
    const seen = rt.events().map(({ hostTurnId, microtaskBatchId }) => [hostTurnId, microtaskBatchId]);
    for (let i = 1; i < seen.length; i++) {
        const [[turnA, batchA], [turnB, batchB]] = [seen[i - 1], seen[i]];
        assert.ok(turnB > turnA || (turnB === turnA && batchB >= batchA), `${seen[i - 1]} then ${seen[i]}`);
    }
    assert.ok(seen.at(-1)[0] > 3n, 'several turns');
    assert.ok(seen.some(([, batch]) => batch > 2n), 'several batches in a turn');
});

test('B1: an idle pump has nothing scheduled and no timer', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    region.spawn(() => {});
    region.spawn(never);
    const slept = region.spawn((cx) => cx.sleep(5));
    await host.pass(10);
    await slept.result;
    assert.deepEqual([host.microtasks.length, host.messages.length, host.timers.size], [0, 0, 0]);
});

test('B1: what the polls of a turn resume counts in its time', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const unwind = () => {
        host.time += 1;
    };
    for (let i = 0; i < 1000; i++) region.spawn((cx) => cx.sleep(1e9).finally(unwind));
    await host.settle();
    region.cancel({ within: 1e6 });
    for (let began = host.time; !region.ended; began = host.time) {
        await host.runMicrotasks();
        assert.ok(host.time - began <= 8 + 2 * 64, `${host.time - began} ms in one turn`);
        await host.step();
    }
});
