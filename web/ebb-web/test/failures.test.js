import assert from 'node:assert/strict';
import test from 'node:test';

import { Cancelled } from '../index.js';
import { hears } from './hearing.js';
import { virtual } from './virtual-host.js';

const fails = (message) => async (cx) => {
    await cx.yield();
    throw new Error(message);
};

test('fail fast: the first failure cancels the siblings and is what done rejects with', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const failed = assert.rejects(region.done, { message: 'first' });
    const sibling = region.spawn((cx) => cx.sleep(1000));
    const below = region.region().spawn((cx) => cx.sleep(1000));
    region.spawn(fails('first'));
    region.spawn(async (cx) => {
        await cx.sleep(1000).catch(() => {});
        throw new Error('second');
    });
    await host.settle();
    await failed;
    await assert.rejects(sibling.result, { name: 'AbortError', kind: 'SIBLING_FAILED' });
    await assert.rejects(below.result, Cancelled);
});

test('fail fast: the region closes by itself, nobody has to join it', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    region.done.catch(() => {});
    region.spawn(fails('first'));
    await host.settle();
    assert.equal(region.ended, true);
    assert.equal(rt.stats().regions, 1);
});

test('collect: the others go on, and join rejects with the first failure when all have ended', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region({ collect: true });
    const log = [];
    region.spawn(fails('first'));
    region.spawn(fails('second'));
    const other = region.spawn(async (cx) => {
        await cx.sleep(50);
        log.push('finished');
        return 'fine';
    });
    const joined = assert.rejects(region.join(), { message: 'first' });
    await host.pass(20);
    assert.deepEqual(log, []);
    assert.equal(region.ended, false);
    await host.pass(50);
    await joined;
    assert.equal(await other.result, 'fine');
});

test('a failure that nobody waits for is heard as an unhandled rejection, once', async (t) => {
    const heard = hears(t);
    const { host, rt } = virtual(t);
    rt.region().spawn(fails('nobody listens'));
    await host.settle();
    assert.deepEqual((await heard(1)).map(({ error, kind }) => [kind, error.message]),
        [['rejection', 'nobody listens']]);
});

test('a failure that somebody has caught, by join, close or done, is not heard', async (t) => {
    const heard = hears(t);
    const { host, rt } = virtual(t);
    for (const verb of ['join', 'close', 'done']) {
        const region = rt.region();
        region.spawn(fails('caught'));
        const caught = (verb === 'done' ? region.done : region[verb]()).catch((error) => error.message);
        assert.equal(await host.until(caught), 'caught');
    }
    assert.deepEqual(await heard(0), []);
});

test('a result that is looked at later than the failure is still there', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region({ collect: true });
    region.done.catch(() => {});
    const [bad, good] = [region.spawn(fails('kept')), region.spawn(() => 'kept too')];
    await host.pass(10);
    await assert.rejects(bad.result, { message: 'kept' });
    assert.equal(await good.result, 'kept too');
    assert.equal(bad.result, bad.result);
});

test('a cancellation is no failure: done says cancelled, and nothing is heard', async (t) => {
    const heard = hears(t);
    const { host, rt } = virtual(t);
    const region = rt.region();
    region.spawn((cx) => cx.sleep(1000));
    await host.settle();
    region.cancel('stop');
    await host.settle();
    assert.equal((await region.done).status, 'cancelled');
    assert.deepEqual(await heard(0), []);
});

test('a failure in a task\'s own region is heard by the task: it fails with it', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    region.done.catch(() => {});
    const task = region.spawn(async (cx) => {
        const own = cx.region();
        own.spawn(fails('inside'));
        await own.join();
    });
    await host.settle();
    await assert.rejects(task.result, { message: 'inside' });
    await assert.rejects(region.done, { message: 'inside' });
});

test('a child region\'s failure that was caught does not fail its parent', async (t) => {
    const { host, rt } = virtual(t);
    const outer = rt.region();
    const inner = outer.region();
    const caught = inner.done.catch((error) => error.message);
    inner.spawn(fails('inner'));
    await host.settle();
    assert.equal(await caught, 'inner');
    assert.equal(outer.info().state, 'Open');
    assert.equal((await host.until(outer.close())).status, 'ok');
});

test('a failure in the root is heard, and rt.close() rejects with it', async (t) => {
    const heard = hears(t);
    const { host, rt } = virtual(t);
    rt.root.spawn(fails('in the root'));
    await host.settle();
    assert.deepEqual((await heard(1)).map(({ error }) => error.message), ['in the root']);
    await assert.rejects(host.until(rt.close()), { message: 'in the root' });
});

test('an error is the very one that was thrown: same object, same properties', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const thrown = Object.assign(new TypeError('mine'), { detail: { a: 1 } });
    const done = region.done.catch((error) => error);
    const task = region.spawn(() => {
        throw thrown;
    });
    await host.settle();
    assert.equal(await task.result.catch((error) => error), thrown);
    assert.equal(await done, thrown);
});

test('the report of a region that failed is there: all failures, and what was left undone', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region({ collect: true });
    assert.equal(region.report, undefined);
    region.spawn(fails('first'));
    region.spawn(fails('second'));
    region.spawn((cx) => void cx.reserve('lease'), { name: 'careless' });
    await assert.rejects(host.until(region.join()), { message: 'first' });
    const { status, failures, leaked, counts } = region.report;
    assert.equal(status, 'failed');
    assert.deepEqual(failures.map(({ message }) => message), ['first', 'second']);
    assert.deepEqual([leaked.map(({ site }) => site), counts.leaked], [['careless: lease'], 1]);
});

test('the report of a region that did not fail is what done resolves with', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const report = await host.until(region.join());
    assert.equal(region.report, report);
});

test('a failure that somebody hears at the task is no unhandled rejection of its region', async (t) => {
    const heard = hears(t);
    const { host, rt } = virtual(t);
    for (const region of [rt.region(), rt.root]) {
        const task = region.spawn(fails('caught at the task'));
        const caught = task.result.catch((error) => error.message);
        await host.settle();
        assert.equal(await caught, 'caught at the task');
    }
    assert.deepEqual(await heard(0), []);
});
