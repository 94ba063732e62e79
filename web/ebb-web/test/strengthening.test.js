import assert from 'node:assert/strict';
import test from 'node:test';

import { assertFollows, KINDS, PHASES, SEVERITIES } from './contract.js';
import { virtual } from './virtual-host.js';

const never = () => new Promise(() => {});

/** Numbers that look random and are the same in every run. */
function numbers(seed) {
    let state = seed;
    return (n) => {
        state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
        return (state >> 8) % n;
    };
}

test('R1: a request is strengthened by a more severe one only; the epoch counts that', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(never);
    await host.settle();
    const seen = [];
    const kinds = ['USER', 'RACE_LOST', 'TIMEOUT', 'USER', 'BUDGET', 'SHUTDOWN', 'TIMEOUT', 'SHUTDOWN'];
    for (const kind of kinds) {
        task.cancel({ kind, message: kind });
        const { epoch, severity, kind: told } = task.witness();
        seen.push(`${told} ${severity} ${epoch} ${rt.info(task.id).message}`);
    }
    assert.deepEqual(seen, [
        'USER polite 1 USER', 'USER polite 1 USER', 'TIMEOUT urgent 2 TIMEOUT', 'TIMEOUT urgent 2 TIMEOUT',
        'TIMEOUT urgent 2 TIMEOUT', 'SHUTDOWN forced 3 SHUTDOWN', 'SHUTDOWN forced 3 SHUTDOWN',
        'SHUTDOWN forced 3 SHUTDOWN',
    ]);
});

test('R1: each kind has the severity of the contract', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    for (const [kind, severity] of Object.entries(KINDS)) {
        const task = region.spawn(never);
        await host.settle();
        task.cancel({ kind });
        assert.deepEqual([task.witness().kind, task.witness().severity], [kind, severity]);
    }
});

test('R1: the same request again is allowed and changes nothing that anybody can see', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn(never);
    await host.settle();
    region.cancel('stop');
    const before = [task.witness(), region.info()];
    region.cancel('stop');
    assert.deepEqual([task.witness(), region.info()], before);
});

test('R1: a budget of the caller\'s own tightens and never widens', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn(never);
    await host.settle();
    const budgets = [];
    const asked = [{ within: 1000, polls: 100 }, { within: 2000, polls: 500 }, { within: 300 }, { polls: 7 }];
    for (const budget of asked) {
        region.cancel(budget);
        const { deadline, polls } = task.witness().budget;
        budgets.push([Number(deadline / 1000000n), polls]);
    }
    assert.deepEqual(budgets, [[1000, 100], [1000, 100], [300, 100], [300, 7]]);
    assert.equal(region.info().deadline, 300000000n);
});

test('R1: any sequence of requests on a task and its regions moves every witness one way', async (t) => {
    for (let seed = 1; seed <= 20; seed++) {
        const cleanup = { polite: { ms: 400 }, urgent: { ms: 200 }, forced: { ms: 100 } };
        const { host, rt } = virtual(t, { cleanup });
        const pick = numbers(seed);
        const outer = rt.region();
        const inner = outer.region();
        const task = inner.spawn((cx) => cx.mask(never));
        await host.settle();
        let last = task.witness();
        for (let i = 0; i < 30 && !task.ended; i++) {
            const target = [task, inner, outer][pick(3)];
            const budget = target === task || pick(2) ? {} : { within: pick(500), polls: pick(2000) };
            target.cancel({ kind: Object.keys(KINDS)[pick(9)], ...budget });
            if (pick(3) === 0) await host.pass(pick(8));
            const next = task.witness();
            assertFollows(last, next);
            last = next;
        }
        assert.ok(last.epoch >= 1 && last.epoch <= SEVERITIES.length - 1, `seed ${seed}`);
    }
});

test('R1: strengthening goes down the tree as the request did', async (t) => {
    const { host, rt } = virtual(t);
    const outer = rt.region();
    const task = outer.region().spawn(never);
    await host.settle();
    outer.cancel('please');
    assert.deepEqual([task.witness().severity, task.witness().epoch], ['polite', 1]);
    outer.cancel({ kind: 'SHUTDOWN' });
    assert.deepEqual([task.witness().severity, task.witness().epoch, task.witness().kind],
        ['forced', 2, 'PARENT']);
    const types = rt.events().filter(({ taskId }) => taskId === task.id).map(({ type }) => type);
    assert.deepEqual(types.filter((type) => type.startsWith('cancel_')),
        ['cancel_requested', 'cancel_strengthened']);
});

test('R3: a request while finalizing strengthens and does not leave Finalizing', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const task = rt.region().spawn(async (cx) => {
        cx.defer(async () => {
            log.push(task.witness().phase);
            await cx.sleep(10);
            log.push('finalized');
        });
        await cx.sleep(1000);
    });
    await host.settle();
    task.cancel('stop');
    await host.settle();
    const before = task.witness();
    assert.equal(before.phase, 'Finalizing');
    task.cancel({ kind: 'TIMEOUT', message: 'hurry' });
    const after = task.witness();
    assert.deepEqual([after.phase, after.severity, after.epoch], ['Finalizing', 'urgent', 2]);
    assertFollows(before, after);
    await host.finish();
    assert.deepEqual(log, ['Finalizing', 'finalized']);
    assertFollows(after, task.witness());
    assert.equal(task.witness().phase, 'Completed');
    const phases = rt.events().filter(({ taskId, cancelPhase }) => taskId === task.id && cancelPhase)
        .map(({ cancelPhase }) => PHASES.indexOf(cancelPhase));
    assert.deepEqual(phases, [...phases].sort(), 'no phase comes back');
});

test('R3: a request after the end changes nothing: Completed absorbs', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn((cx) => cx.sleep(1000));
    await host.settle();
    task.cancel('stop');
    await host.settle();
    const last = task.witness();
    assert.equal(last.phase, 'Completed');
    task.cancel({ kind: 'SHUTDOWN' });
    task.force();
    await host.settle();
    assert.deepEqual(task.witness(), last);
});
