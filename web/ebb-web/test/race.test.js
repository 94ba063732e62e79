import assert from 'node:assert/strict';
import test from 'node:test';

import { Cancelled } from '../index.js';
import { virtual } from './virtual-host.js';

const never = () => new Promise(() => {});

/** A racer that notes what happens to it. */
function racer(log, name, ms, outcome = () => name) {
    return async (cx) => {
        try {
            await cx.sleep(ms);
            return outcome();
        } catch (error) {
            log.push(`${name} ${error instanceof Cancelled ? error.kind : error.message}`);
            await cx.mask(() => cx.sleep(20));
            log.push(`${name} has cleaned up`);
            throw error;
        }
    };
}

test('race gives the first to settle, and the losers have ended when it does', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const region = rt.region();
    const won = region.race([racer(log, 'slow', 100), racer(log, 'fast', 10), racer(log, 'slower', 500)])
        .then((value) => log.push(`won by ${value}`));
    await host.pass(20);
    assert.deepEqual([...log].sort(), ['slow RACE_LOST', 'slower RACE_LOST']);
    await host.pass(40);
    await won;
    assert.deepEqual(log.slice(2, 4).sort(), ['slow has cleaned up', 'slower has cleaned up']);
    assert.equal(log[4], 'won by fast');
});

test('losers are drained before it settles, by events', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    let seen;
    region.race([racer([], 'slow', 100), racer([], 'fast', 10)]).then(() => {
        seen = rt.events();
    });
    await host.finish();
    const spawned = seen.filter(({ type }) => type === 'task_spawned').map(({ taskId }) => taskId);
    const isEnd = ({ type }) => ['completed', 'finalized'].includes(type);
    const ended = seen.filter(isEnd).map(({ taskId }) => taskId);
    assert.equal(spawned.length, 2);
    assert.deepEqual([...ended].sort(), [...spawned].sort());
    assert.equal(seen.at(-1).type === 'idle' ? seen.at(-2).type : seen.at(-1).type, 'region_closed');
    const lost = seen.find(({ type }) => type === 'region_cancelled');
    assert.equal(lost.cancelKind, 'RACE_LOST');
});

test('the first to settle may fail: race rejects with that, and the region it was in goes on', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const region = rt.region();
    const raced = region.race([racer(log, 'slow', 100), racer(log, 'bad', 10, () => {
        throw new RangeError('no');
    })]);
    raced.catch(() => {});
    await host.pass(50);
    await assert.rejects(raced, RangeError);
    assert.deepEqual(log.slice(-2), ['slow RACE_LOST', 'slow has cleaned up']);
    const next = region.spawn(() => 'still open');
    await host.settle();
    assert.equal(await next.result, 'still open');
    assert.equal((await host.until(region.close())).status, 'ok');
});

test('a race that is cancelled from outside rejects when all of it has ended', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const region = rt.region();
    const raced = region.race([racer(log, 'a', 100), racer(log, 'b', 100)]);
    raced.then(() => log.push('?'), (error) => log.push(`rejected: ${error.kind}`));
    await host.settle();
    region.cancel('all of you');
    await host.finish();
    assert.deepEqual(log.slice(-1), ['rejected: PARENT']);
    assert.equal(log.filter((line) => line.endsWith('cleaned up')).length, 2);
});

test('a race takes a signal and a timeout as a region does', async (t) => {
    const { host, rt } = virtual(t);
    const controller = new AbortController();
    const region = rt.region();
    const aborted = region.race([(cx) => cx.sleep(1000)], { signal: controller.signal });
    const late = region.race([(cx) => cx.sleep(1000)], { timeout: 20 });
    for (const promise of [aborted, late]) promise.catch(() => {});
    await host.settle();
    controller.abort('changed my mind');
    await host.pass(30);
    await assert.rejects(aborted, Cancelled);
    await assert.rejects(late, { severity: 'urgent' });
});

test('two that settle in the same turn: the first of the list wins, nobody fails', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const raced = region.race([() => 'one', () => 'two', () => 'three']);
    assert.equal(await host.until(raced), 'one');
    assert.equal((await host.until(region.close())).status, 'ok');
});

test('a loser that never returns is abandoned at the end of its budget, and the race settles', async (t) => {
    const { host, rt } = virtual(t, { cleanup: { polite: { ms: 100 } } });
    const region = rt.region();
    const raced = region.race([() => 'quick', never]);
    assert.equal(await host.until(raced), 'quick');
    assert.ok(host.time >= 80 && host.time <= 200, `${host.time} ms`);
    assert.equal(rt.stats().abandoned, 1);
});

test('a race of nothing, or of what is no function, is a TypeError and leaves nothing', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    await assert.rejects(region.race([]), TypeError);
    const bad = region.race([(cx) => cx.sleep(1000), 'no function']);
    bad.catch(() => {});
    await host.finish();
    await assert.rejects(bad, TypeError);
    await assert.rejects(region.race(5), TypeError);
    assert.equal(rt.stats().tasks, 0);
    assert.equal((await host.until(region.close())).status, 'ok');
});

test('a race of a task that is cancelled ends with it, in good order', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const task = rt.region().spawn((cx) => cx.wait(
        cx.region().race([racer(log, 'a', 100), racer(log, 'b', 200)])));
    await host.settle();
    task.cancel('never mind');
    await host.pass(50);
    assert.equal(task.ended, true);
    await assert.rejects(task.result, { reason: 'never mind' });
    assert.equal(log.filter((line) => line.endsWith('cleaned up')).length, 2);
    assert.equal(rt.stats().tasks, 0);
});

test('a race whose signal is aborted already is cancelled, with its cause, and runs nobody', async (t) => {
    const { host, rt } = virtual(t);
    let ran = 0;
    const racers = [() => ran++, () => ran++];
    const reason = new Error('no race today');
    const raced = rt.region().race(racers, { signal: AbortSignal.abort(reason) });
    raced.catch(() => {});
    await host.finish();
    await assert.rejects(raced, (error) => error instanceof Cancelled && error.cause === reason);
    assert.equal(ran, 0);
});
