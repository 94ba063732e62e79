// A page that is left, with and without the page cache: what could end has, the rest is named.
import assert from 'node:assert/strict';
import test from 'node:test';

import { assertQuiet, browser } from './browser.js';

const TASKS = 1000;
const STUCK = TASKS / 10;

function assertLeft({ status, counts, abandoned, tasks }) {
    assert.equal(status, 'cancelled');
    assert.equal(tasks, 0);
    assert.deepEqual(counts, { cleanups: TASKS - STUCK, finalizers: TASKS, leases: TASKS });
    assert.deepEqual(abandoned.sort(), Array.from({ length: STUCK }, (_, i) => `stuck ${i * 10}`).sort());
}

for (const cached of [true, false]) {
    test(`every cleanup and finalizer of 1,000 tasks runs at pagehide, page cache ${cached ? 'on' : 'off'}`, async (t) => {
        const args = cached ? [] : ['--disable-features=BackForwardCache'];
        const { page, pages } = await browser(t, 'leave', { args });
        await page.waitFor(() => globalThis.ready > 1000, 'all tasks to wait');
        await page.goto(`${pages}blank.html`);
        assertLeft(JSON.parse(await page.evaluate(() => localStorage.left)));
        await page.evaluate(() => void history.back());
        await page.waitFor(() => location.pathname.endsWith('leave.html') && globalThis.shown, 'the page to come back');
        const shown = await page.evaluate(() => globalThis.shown);
        assert.equal(shown.persisted, cached);
        if (cached) {
            assert.deepEqual([shown.flushed, shown.code], [true, 'EBB_ERR_CLOSED']);
            assert.match(shown.message, /flushed/);
        }
        assertQuiet(page);
    });
}
