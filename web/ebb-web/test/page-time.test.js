/* The kernel's clock is the time that the page could run: a late tick advances it by one second at most. */
import assert from 'node:assert/strict';
import test from 'node:test';

import { virtual } from './virtual-host.js';

/** The page stands still for so long: nothing runs, then what is due comes late. */
async function freeze(host, ms) {
    await host.settle();
    host.time += ms;
}

const HOUR = 3_600_000;

test('a page that is frozen in a cleanup finishes it: an hour costs one second of its budget', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    let saved = false;
    region.spawn(async (cx) => {
        await cx.mask(async () => {
            for (let i = 0; i < 3; i++) await cx.wait(new Promise((resolve) => host.capabilities.setTimeout(resolve, 500)));
            saved = true;
        });
    });
    await host.settle();
    region.cancel('hidden');
    await freeze(host, HOUR);
    const report = await host.until(region.done);
    assert.equal(saved, true);
    assert.deepEqual(report.forced, []);
});

test('a cleanup that takes longer than its budget of page time is cut, and the report says so', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    region.spawn((cx) => cx.mask(() => new Promise(() => {})), { name: 'stuck' });
    await host.settle();
    region.cancel('hidden');
    for (let i = 0; i < 3; i++) {
        await freeze(host, HOUR);
        await host.pass(0);
        assert.equal(region.ended, false);
    }
    const report = await host.until(region.done);
    assert.deepEqual(report.forced.map(({ site, abandoned }) => [site, abandoned]), [['stuck', true]]);
    assert.ok(rt.now < 10_000_000_000n, `${rt.now}`);
});

test('a timeout does not pass while the page is frozen', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn((cx) => cx.once(new EventTarget(), 'never'), { timeout: 5000 });
    const failed = assert.rejects(task.result, { name: 'TimeoutError' });
    await host.settle();
    await freeze(host, HOUR);
    await host.pass(3000);
    assert.equal(task.ended, false);
    await host.pass(3000);
    assert.equal(task.ended, true);
    await failed;
});

test('a sleep is the host\'s: it ends when its time is over, frozen or not', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region({ timeout: 10 * HOUR });
    const task = region.spawn((cx) => cx.sleep(60_000));
    await host.settle();
    await freeze(host, HOUR);
    await host.pass(0);
    assert.equal(task.ended, true);
    await task.result;
});

test('without a deadline there is no tick: one timer, for what is due', async (t) => {
    const { host, rt } = virtual(t);
    rt.region().spawn((cx) => cx.sleep(60_000));
    await host.settle();
    assert.deepEqual([...host.timers.values()].map(({ ms }) => ms), [60_000]);
    rt.region({ timeout: HOUR });
    await host.settle();
    assert.deepEqual([...host.timers.values()].map(({ ms }) => ms), [1000]);
});
