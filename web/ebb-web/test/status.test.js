/* A region's status says what happened to the region, and `forced` what was cut. */
import assert from 'node:assert/strict';
import test from 'node:test';

import { virtual } from './virtual-host.js';

test('a region that was cancelled says so, whatever is in it', async (t) => {
    const { host, rt } = virtual(t);
    const fill = {
        nothing: () => {},
        'a region with a task': (region) => void region.region().spawn((cx) => cx.sleep(1000)),
        'a task that returns all the same': (region) => void region.spawn((cx) => cx.mask(() => cx.sleep(10))),
    };
    for (const [what, act] of Object.entries(fill)) {
        const region = rt.region();
        act(region);
        await host.settle();
        region.cancel('gone');
        assert.equal((await host.until(region.done)).status, 'cancelled', what);
    }
});

test('a region that was not cancelled is ok, though a task in it was', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn((cx) => cx.sleep(1000));
    await host.settle();
    task.cancel();
    assert.equal((await host.until(region.join())).status, 'ok');
});

/** What a save reports that takes `ms` under a mask and has 50 for it. */
async function save(t, ms) {
    const { host, rt } = virtual(t);
    const editor = rt.region({ name: 'editor' });
    const form = editor.region({ name: 'form' });
    let saved = false;
    form.spawn(async (cx) => {
        await cx.mask(async () => {
            await cx.sleep(ms);
            saved = true;
        });
    }, { name: 'save' });
    await host.settle();
    editor.cancel({ within: 50 });
    return { report: await host.until(editor.done), saved };
}

test('a save that was cut and one that finished do not look alike, seen from above too', async (t) => {
    const cut = await save(t, 300);
    assert.equal(cut.saved, false);
    assert.deepEqual(cut.report.forced, [{ site: 'save', region: 'form', abandoned: false }]);
    assert.equal(cut.report.counts.forced, 1);
    const whole = await save(t, 10);
    assert.equal(whole.saved, true);
    assert.deepEqual([whole.report.forced, whole.report.counts.forced], [[], 0]);
});

test('a finalizer that was cut is named as well', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    region.spawn(async (cx) => {
        cx.defer(() => cx.sleep(1000));
        await cx.sleep(1000);
    }, { name: 'slow' });
    await host.settle();
    region.cancel({ within: 50 });
    assert.deepEqual((await host.until(region.done)).forced.map(({ site }) => site), ['slow']);
});

test('a region is cancelled at the end of an await using block, and has ended then', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    region.spawn((cx) => cx.sleep(1000));
    await host.until(region[Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]());
    assert.equal(region.report.status, 'cancelled');
});
