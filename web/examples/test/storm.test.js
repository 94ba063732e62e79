// A cancel of many tasks is worked off in pieces: the page has no long task (over 50 ms) from it.
import assert from 'node:assert/strict';
import test from 'node:test';

import { browser } from './browser.js';

const TASKS = 50_000;
const LONG_MS = 50;

/* Runs in the page: so many waiting tasks, with a finalizer each, are cancelled. On a machine with other work every
 * piece may take long, so a control that does a fixed piece of work in each turn, about 10 ms, is measured beside it. */
async function storm(count) {
    const { Runtime, hostOf } = await import('ebb-web');
    const turn = () => new Promise((resolve) => setTimeout(resolve));
    const rt = new Runtime(hostOf(globalThis));
    const region = rt.region();
    let finalized = 0;
    for (let i = 0; i < count; i++) {
        region.spawn(async (cx) => {
            cx.defer(() => void finalized++);
            await cx.sleep(1e6);
        });
        if (i % 1000 === 0) await turn();
    }
    while (rt.stats().runnable > 0) await turn();

    let work = 1000;
    const burn = (n) => {
        for (let i = 0; i < n; i++) document.body.dataset.i = i;
    };
    for (let took = 0; took < 10; work *= 2) {
        const began = performance.now();
        burn(work);
        took = performance.now() - began;
    }

    /** The longest task of the page while `act` goes on. */
    const longest = async (act) => {
        let most = 0;
        const observer = new PerformanceObserver((list) => {
            for (const { duration } of list.getEntries()) most = Math.max(most, duration);
        });
        observer.observe({ type: 'longtask' });
        await turn();
        await act();
        for (let i = 0; i < 10; i++) await turn(); /* entries come later */
        observer.disconnect();
        return most;
    };
    const control = await longest(async () => {
        for (let i = 0; i < 50; i++) {
            burn(work / 2); /* as much as took 10 ms */
            await turn();
        }
    });
    let report;
    const cancel = await longest(async () => {
        region.cancel('the storm');
        report = await region.done;
    });
    await rt.close();
    return { cancel, control, finalized, status: report.status, forced: report.counts.forced };
}

test('50,000 tasks are cancelled without a long task', async (t) => {
    const { page } = await browser(t, 'blank');
    page.timeoutMs = 300_000;
    let seen;
    for (let i = 0; i < 3; i++) {
        seen = await page.evaluate(storm, TASKS);
        t.diagnostic(JSON.stringify(seen));
        assert.deepEqual([seen.status, seen.forced, seen.finalized], ['cancelled', 0, TASKS]);
        if (seen.cancel <= LONG_MS) return;
    }
    assert.ok(seen.cancel <= 3 * Math.max(LONG_MS, seen.control), `a task of ${seen.cancel} ms, thrice; control ${seen.control} ms`);
});
