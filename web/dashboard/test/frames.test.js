/* Ten thousand live regions: how long the page's frames take while they come and are scrolled, and how many elements they are. */
import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';

import { Chromium } from '../../tools/chromium.js';
import { Harbour, SOON_MS, onPage, until } from './services.js';

const BERTHS = 10000;
const WANTED_MS = 50;
const ELEMENTS = 1000; /* of the whole page */
let browser;
let harbour;

before(async () => {
    [browser, harbour] = await Promise.all([Chromium.start(), Harbour.start(BERTHS)]);
});
after(async () => {
    await browser?.close();
    await harbour?.end();
});

/** Runs in the page: from now on the longest task of the page is kept, which is the longest that a frame may have to wait. */
function watchTasks() {
    globalThis.longest = 0;
    new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries()) globalThis.longest = Math.max(globalThis.longest, duration);
    }).observe({ type: 'longtask' });
}

/** Runs in the page: how long its frames took since this was asked last. One that another process interrupts takes longer. */
function takeFrames() {
    const times = globalThis.dashboardTree.frames.splice(0).sort((a, b) => a - b);
    return { n: times.length, median: times[times.length >> 1], worst: times.at(-1), longest: globalThis.longest };
}
const told = ({ n, median, worst, longest }) =>
    `${n} frames, half of them under ${median.toFixed(1)} ms, the longest ${worst.toFixed(1)} ms, the longest task ${longest} ms`;

/** Runs in the page: from the top to the bottom, a part of it in each frame. */
async function scrollAll() {
    const tree = document.querySelector('#tree');
    for (let i = 0; i <= 60; i++) {
        tree.scrollTop = (tree.scrollHeight * i) / 60;
        await new Promise((end) => requestAnimationFrame(end));
    }
}

it('a frame of ten thousand regions is short, whatever is done', (t) => onPage(browser, harbour, async (page) => {
    await page.evaluate(watchTasks);
    const all = await page.waitFor((n) => document.querySelector('#tree').ariaRowCount > n && performance.now(), 'all regions', SOON_MS, BERTHS);
    const come = await page.evaluate(takeFrames);
    await page.evaluate(scrollAll);
    await page.evaluate(() => document.querySelector('#tree').focus());
    await page.press('Home');
    await page.press('ArrowLeft'); /* folds all of it, */
    await page.waitFor(() => document.querySelector('#tree').ariaRowCount === '2', 'one row', SOON_MS);
    await page.press('ArrowRight'); /* and unfolds it */
    await page.waitFor((n) => document.querySelector('#tree').ariaRowCount > n, 'all regions', SOON_MS, BERTHS);
    await until(page, '.row');
    const used = await page.evaluate(takeFrames);
    t.diagnostic(`${BERTHS} regions were there after ${Math.round(all)} ms: ${told(come)}`);
    t.diagnostic(`scrolled, folded and unfolded: ${told(used)}`);
    assert.ok(come.n > 20 && used.n > 60, 'frames');
    assert.ok(come.median < WANTED_MS, `while they came: ${told(come)}`);
    assert.ok(used.median < WANTED_MS, `scrolled: ${told(used)}`);
    const elements = await page.evaluate(() => document.querySelectorAll('*').length);
    assert.ok(elements < ELEMENTS, `${elements} elements`);
}));
