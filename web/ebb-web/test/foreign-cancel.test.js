/* A Cancelled of another task that reaches one which nobody cancelled is that one's failure. */
import assert from 'node:assert/strict';
import test from 'node:test';

import { virtual } from './virtual-host.js';

test('a timeout of another task that nobody catches fails the task that waited for it', async (t) => {
    const { host, rt } = virtual(t);
    const page = rt.region({ name: 'page' });
    let saved = false;
    page.spawn(async (cx) => {
        const own = cx.region({ collect: true });
        await cx.wait(own.spawn((c) => c.sleep(1000), { timeout: 10 }).result);
        saved = true;
    });
    const sibling = page.spawn((cx) => cx.sleep(60));
    await assert.rejects(host.until(page.join()), { name: 'TimeoutError', kind: 'TIMEOUT' });
    assert.equal(page.report.status, 'failed');
    assert.equal(saved, false);
    await assert.rejects(sibling.result, { kind: 'SIBLING_FAILED' });
});

test('a race whose time is over rejects with a TimeoutError, and that is the failure of the task', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    region.spawn(() => region.race([(cx) => cx.sleep(1000), (cx) => cx.sleep(2000)], { timeout: 10 }));
    await assert.rejects(host.until(region.join()), { name: 'TimeoutError' });
});

test('a cancel of another task is the failure of the one that waits for it, as an AbortError', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const other = rt.region().spawn((cx) => cx.sleep(1000));
    region.spawn((cx) => cx.wait(other.result));
    await host.settle();
    other.cancel('not needed');
    await assert.rejects(host.until(region.join()), { name: 'AbortError', reason: 'not needed' });
});

test('a finalizer that fails with a Cancelled of another task fails its own', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const other = rt.region();
    region.spawn((cx) => {
        cx.defer(async () => {
            await other.spawn((c) => c.sleep(1000), { timeout: 10 }).result;
        });
    });
    await assert.rejects(host.until(region.join()), { name: 'TimeoutError' });
});

test('a task that is cancelled while it waits for another that is cancelled is cancelled', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const other = region.spawn((cx) => cx.sleep(1000));
    region.spawn(() => other.result);
    await host.settle();
    region.cancel('both');
    assert.equal((await host.until(region.done)).status, 'cancelled');
});
