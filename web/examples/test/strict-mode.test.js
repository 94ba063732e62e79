// React 18 in StrictMode mounts each component twice: no unhandled rejection, and nothing is left.
import assert from 'node:assert/strict';
import test from 'node:test';

import { assertQuiet, browser } from './browser.js';

/* Runs in the page. */
async function mounts(times) {
    const { Runtime, hostOf } = await import('ebb-web');
    const { StrictMode, createElement, createRoot, flushSync } = await import('react');
    const { Price, useRegion } = await import('/examples/widgets.js');
    const unhandled = [];
    addEventListener('unhandledrejection', ({ reason }) => unhandled.push(String(reason)));
    const rt = new Runtime(hostOf(globalThis));
    let mounted = 0;
    /* Each way in which a task that is already cancelled asks for something. */
    const Widget = () => {
        useRegion(rt, 'widget', (region) => {
            mounted++;
            region.spawn(async (cx) => {
                const rows = cx.region({ name: 'rows' });
                rows.spawn((c) => c.sleep(1e6));
                await cx.wait(rows.join());
            });
            region.spawn(async (cx) => {
                cx.reserve('lease').commit();
                cx.task.region.spawn((c) => c.sleep(1e6));
                await region.race([(c) => c.sleep(1e6), (c) => c.once(document, 'never')]);
            });
        }, []);
        return createElement(Price, { rt, symbol: 'EBB' });
    };
    for (let i = 0; i < times; i++) {
        const root = createRoot(document.querySelector('main'));
        flushSync(() => root.render(createElement(StrictMode, null, createElement(Widget))));
        await new Promise((resolve) => setTimeout(resolve, i % 10 === 0 ? 20 : 0));
        root.unmount();
    }
    await rt.close();
    await new Promise((resolve) => setTimeout(resolve, 50));
    const { tasks, regions, timers, obligations } = rt.stats();
    return { mounted, unhandled, left: { tasks, regions, timers, obligations } };
}

test('100 mounts in StrictMode: no unhandled rejection, nothing left', async (t) => {
    const { page } = await browser(t, 'react');
    const { mounted, unhandled, left } = await page.evaluate(mounts, 100);
    assert.equal(mounted, 200, 'each was mounted twice');
    assert.deepEqual(unhandled, []);
    assert.deepEqual(left, { tasks: 0, regions: 0, timers: 0, obligations: 0 });
    assertQuiet(page);
});
