/* What a cancelled task is refused is Cancelled, so that stopping there is no failure. */
import assert from 'node:assert/strict';
import test from 'node:test';

import { Cancelled } from '../index.js';
import { hears } from './hearing.js';
import { virtual } from './virtual-host.js';

const asks = {
    'cx.region': (cx) => cx.region(),
    'cx.reserve': (cx) => cx.reserve('lease').commit(),
    'cx.sleep': (cx) => cx.sleep(1),
    'region.spawn': (cx) => cx.task.region.spawn(async () => {}),
    'region.region': (cx) => cx.task.region.region(),
    'region.race': (cx) => cx.task.region.race([(c) => c.sleep(1)]),
};

for (const [what, ask] of Object.entries(asks)) {
    test(`a task that is cancelled before it calls ${what} ends as cancelled, and its region too`, async (t) => {
        const heard = hears(t);
        const { host, rt } = virtual(t);
        const region = rt.region();
        region.spawn(async (cx) => {
            await ask(cx);
        });
        region.cancel('unmounted');
        assert.equal((await host.until(region.done)).status, 'cancelled');
        assert.deepEqual(await heard(0), []);
    });
}

test('a region that is cancelled refuses with what cancelled it, also when it has ended', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    region.spawn((cx) => cx.mask(() => cx.sleep(10)));
    await host.settle();
    region.cancel('gone');
    for (const act of [() => region.spawn(() => {}), () => region.region()]) {
        assert.throws(act, (error) => error instanceof Cancelled && error.reason === 'gone');
    }
    await host.until(region.done);
    assert.throws(() => region.spawn(() => {}), (error) => error instanceof Cancelled && error.reason === 'gone');
});

test('a region that was closed and not cancelled refuses with EBB_ERR_CLOSED', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    await host.until(region.close());
    assert.throws(() => region.spawn(() => {}), { code: 'EBB_ERR_CLOSED' });
});

test('a task that waits for itself, or for a region it is in, is told so', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region({ name: 'own', collect: true });
    region.done.catch(() => {});
    const inner = region.region({ collect: true });
    inner.done.catch(() => {});
    const self = region.spawn((cx) => cx.wait(self.result), { name: 'self' });
    const joins = inner.spawn((cx) => cx.wait(region.join()), { name: 'joins' });
    const closes = region.spawn((cx) => cx.wait(rt.close()), { name: 'closes' });
    await host.settle();
    for (const [task, what] of [[self, 'itself'], [joins, 'region own'], [closes, 'region root']]) {
        await assert.rejects(task.result, (error) => error.code === 'EBB_ERR_INVALID' && error.message.includes(what));
    }
});
