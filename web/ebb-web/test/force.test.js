import assert from 'node:assert/strict';
import test from 'node:test';

import { CLEAN } from './contract.js';
import { virtual } from './virtual-host.js';

const never = () => new Promise(() => {});

test('a task that never returns after force is abandoned and named, and its region closes', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn(never, { name: 'stubborn' });
    await host.settle();
    region.force();
    assert.equal(rt.info(task.id).forced, true);
    const report = await host.until(region.done);
    assert.deepEqual(report, {
        ...CLEAN, status: 'cancelled', abandoned: [{ id: task.id, site: 'stubborn' }],
        forced: [{ site: 'stubborn', region: 'region', abandoned: true }],
        counts: { abandoned: 1, leaked: 0, forced: 1 },
    });
    await assert.rejects(task.result, { name: 'AbortError', kind: 'BUDGET' });
    assert.equal(rt.stats().abandoned, 1);
    const abandoned = rt.events().find(({ type }) => type === 'abandoned');
    assert.deepEqual([abandoned.taskId, abandoned.text], [task.id, 'stubborn']);
});

test('a task that waits in cx is told by force and not abandoned, whoever is ready beside it', async (t) => {
    for (const others of [0, 12, 300]) {
        const { host, rt } = virtual(t, { trace: 0 });
        const busy = rt.region();
        const ready = Array.from({ length: others }, () => busy.spawn(never));
        const region = rt.region();
        const log = [];
        region.spawn(async (cx) => {
            try {
                await cx.sleep(1000);
            } finally {
                log.push('cleaned up');
            }
        });
        await host.settle();
        ready.forEach(({ id }) => rt.wake(id));
        region.force();
        const { abandoned } = await host.until(region.done);
        assert.deepEqual([abandoned, log], [[], ['cleaned up']], `${others} others`);
    }
});

test('code that unwinds over many awaits has the turns for it', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const deep = async (cx, depth) => {
        try {
            return depth === 0 ? await cx.sleep(1000) : await deep(cx, depth - 1);
        } finally {
            await null;
        }
    };
    region.spawn((cx) => deep(cx, 50));
    await host.settle();
    region.force();
    assert.deepEqual((await host.until(region.done)).abandoned, []);
});

test('force reaches masked code too: its waits end, once', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const log = [];
    region.spawn((cx) => cx.mask(async () => {
        await cx.sleep(1000).catch((error) => log.push(error.kind));
        log.push(cx.cancelled, cx.signal.aborted);
    }));
    await host.settle();
    region.force();
    const { abandoned } = await host.until(region.done);
    assert.deepEqual(abandoned, []);
    assert.deepEqual(log, ['BUDGET', true, true]);
});

test('what an abandoned task had is taken from it: obligations, finalizers, listeners', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const log = [];
    const target = new EventTarget();
    let listens = true;
    target.removeEventListener = () => {
        listens = false;
    };
    region.spawn(async (cx) => {
        cx.reserve('lease', () => log.push('lease aborted'));
        cx.defer(() => log.push('finalizer'));
        cx.on(target, 'x', () => {});
        await never();
    });
    await host.settle();
    region.force();
    await host.until(region.done);
    assert.deepEqual(log.sort(), ['finalizer', 'lease aborted']);
    assert.equal(listens, false);
    assert.equal(rt.stats().obligations, 0);
});

test('force of one task leaves the others of its region alone', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const [one, two] = [region.spawn(never, { name: 'one' }), region.spawn(never, { name: 'two' })];
    await host.settle();
    one.force();
    await host.settle();
    assert.equal(one.ended, true);
    assert.equal(two.witness().epoch, 0);
    assert.deepEqual(region.info().abandoned, 1);
});

test('a budget that runs out forces by itself: time', async (t) => {
    const { host, rt } = virtual(t, { cleanup: { polite: { ms: 100 } } });
    const region = rt.region();
    const task = region.spawn(never);
    await host.settle();
    region.cancel('please');
    await host.pass(70);
    assert.equal(rt.info(task.id).forced, false);
    await host.pass(40);
    assert.equal(task.ended, true, 'four fifths are the task\'s, one is its finalizers\'');
    assert.equal((await region.done).abandoned.length, 1);
});

test('a budget that runs out forces by itself: polls', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    let rounds = 0;
    region.spawn(async (cx) => {
        for (;;) {
            rounds++;
            await cx.yield().catch(() => cx.wait(never()).catch(() => {}));
            if (rounds > 1000) return;
        }
    });
    await host.settle();
    await host.pass(1);
    region.cancel({ polls: 5 });
    await host.finish();
    assert.equal(region.ended, true);
    assert.ok(rounds <= 1001);
});

test('finalizers have their part of the budget; one that overruns it is abandoned', async (t) => {
    const { host, rt } = virtual(t, { cleanup: { polite: { ms: 100 } } });
    const region = rt.region();
    const log = [];
    region.spawn(async (cx) => {
        cx.defer(() => log.push('second'));
        cx.defer(() => {
            log.push('first hangs');
            return never();
        });
        await cx.sleep(1000);
    });
    await host.settle();
    region.cancel('please');
    await host.until(region.done);
    assert.deepEqual(log, ['first hangs', 'second']);
    assert.ok(host.time >= 90 && host.time < 300, `${host.time} ms`);
    assert.ok(rt.events().some(({ type }) => type === 'finalizer_abandoned'));
});

test('force of everything at once, tasks in every state, ends everything', async (t) => {
    const { host, rt } = virtual(t, { trace: 0 });
    const region = rt.region();
    const states = [
        never, (cx) => cx.sleep(1000), (cx) => cx.mask(never), (cx) => cx.mask(() => cx.sleep(1000)),
        (cx) => cx.once(new EventTarget(), 'x'),
        async (cx) => {
            cx.defer(() => cx.sleep(1000));
            await cx.sleep(1000);
        },
        (cx) => cx.wait(cx.region().spawn(never).result),
    ];
    for (let i = 0; i < 70; i++) region.spawn(states[i % states.length]);
    await host.settle();
    for (let i = 0; i < 12; i++) region.spawn(states[i % 6]); /* and some that were never polled */
    region.force();
    await host.until(region.done);
    const { tasks, obligations, timers, regions } = rt.stats();
    assert.deepEqual({ tasks, obligations, timers, regions },
        { tasks: 0, obligations: 0, timers: 0, regions: 1 });
});

test('after an idle time force gives finalizers the part of the budget that is theirs', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const task = rt.region().spawn(async (cx) => {
        cx.defer(async () => {
            await cx.sleep(20);
            log.push('finalized');
        });
        await cx.sleep(100000);
    });
    await host.settle();
    host.time += 1500; /* and nothing has told the kernel */
    task.force();
    await host.finish();
    assert.deepEqual(log, ['finalized']);
});

test('wakes do not use up the turns of a forced task', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const gates = [];
    region.spawn(async (cx) => {
        const waits = Array.from({ length: 30 }, () => cx.wait(new Promise((resolve) => {
            gates.push(resolve);
        })));
        try {
            await Promise.all(waits.map((wait) => wait.catch(() => {})));
            await cx.sleep(1000);
        } finally {
            for (let i = 0; i < 40; i++) await null;
        }
    });
    await host.settle();
    region.force();
    for (const open of gates) {
        open();
        await host.step();
    }
    assert.deepEqual((await host.until(region.done)).abandoned, []);
});

test('a report names the first hundred and counts them all, and takes no time for it', async (t) => {
    const { host, rt } = virtual(t, { trace: 0 });
    const region = rt.region();
    for (let i = 0; i < 3000; i++) {
        region.spawn(async (cx) => {
            cx.reserve('permit');
            await never();
        });
    }
    await host.settle();
    region.force();
    await host.settle();
    const began = performance.now();
    const { abandoned, leaked, counts } = await host.until(region.done);
    assert.ok(performance.now() - began < 1000);
    assert.equal(counts.abandoned, 3000);
    assert.equal(abandoned.length, 100);
    assert.equal(leaked.length, Math.min(100, counts.leaked));
});

test('a finalizer that was abandoned is counted in the report', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    region.spawn((cx) => {
        cx.defer(never);
    });
    await host.settle();
    region.force();
    const { counts } = await host.until(region.done);
    assert.equal(counts.abandoned, rt.stats().abandoned);
    assert.equal(counts.abandoned, 1);
});
