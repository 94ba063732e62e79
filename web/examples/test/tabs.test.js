// Hidden and frozen tabs: a save under a mask completes, or the report says that it was forced.
import assert from 'node:assert/strict';
import { setTimeout as elapse } from 'node:timers/promises';
import test from 'node:test';

import { assertQuiet, browser } from './browser.js';

/* Runs in the page: a save of some steps, each of which takes a timer of the page, is cancelled with a budget. */
async function save(steps, within) {
    const { Runtime, hostOf } = await import('ebb-web');
    const rt = new Runtime(hostOf(globalThis));
    const region = rt.region({ name: 'editor' });
    const state = globalThis.state = { saved: 0, freezes: 0 };
    document.addEventListener('freeze', () => state.freezes++);
    region.spawn(async (cx) => {
        await cx.mask(async () => {
            for (; state.saved < steps; state.saved++) {
                await cx.wait(new Promise((resolve) => setTimeout(resolve, 100)));
            }
        });
    }, { name: 'save' });
    await new Promise((resolve) => setTimeout(resolve));
    region.cancel({ message: 'the tab is hidden', within });
    globalThis.over = region.done.then(({ status, forced }) => ({ status, forced, saved: state.saved }));
}

const over = () => globalThis.over;

/** A page behind another one, whose timers are throttled. */
async function hidden(t) {
    const { page, chromium } = await browser(t, 'blank', { throttled: true });
    await page.releaseFocus();
    const other = await chromium.page({ newWindow: false });
    await other.bringToFront();
    await page.waitFor(() => document.visibilityState === 'hidden', 'the page to be hidden');
    return { page };
}

test('a save that is frozen for longer than its budget goes on after that and completes', async (t) => {
    const { page } = await hidden(t);
    await page.evaluate(save, 3, 4000);
    await page.lifecycle('frozen');
    await page.waitFor(() => globalThis.state.freezes > 0, 'the page to be frozen');
    await elapse(6000); /* the time that the page stands still is what is tested */
    const frozen = await page.evaluate(() => globalThis.state.saved);
    await page.lifecycle('active');
    const report = await page.evaluate(over);
    t.diagnostic(JSON.stringify({ frozen, ...report }));
    assert.ok(frozen < 3, 'it was frozen in the middle of the save');
    assert.deepEqual(report, { status: 'cancelled', forced: [], saved: 3 });
    assertQuiet(page);
});

test('a save in a hidden tab with throttled timers completes, or the report says forced', async (t) => {
    const { page } = await hidden(t);
    for (const [steps, within] of [[3, 5000], [50, 500]]) {
        await page.evaluate(save, steps, within);
        const { status, forced, saved } = await page.evaluate(over);
        t.diagnostic(JSON.stringify({ steps, within, status, forced, saved }));
        assert.equal(status, 'cancelled');
        assert.equal(forced.length === 0, saved === steps, 'cut and finished do not look alike');
        assert.equal(saved === steps, steps === 3);
    }
});
