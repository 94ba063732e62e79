// The programs of the guide run in Chromium against a real server.
import assert from 'node:assert/strict';
import test from 'node:test';

import { assertQuiet, browser } from './browser.js';

/** Polls something here until it is so: what the server has seen. */
async function until(isSo, what) {
    for (let i = 0; i < 3000; i++) {
        if (isSo()) return;
        await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.fail(`never so: ${what}`);
}

test('search box: a late answer does not overwrite a newer one, and nothing is left', async (t) => {
    const { page, api } = await browser(t, 'blank');
    await page.evaluate(async () => {
        const { Runtime, hostOf } = await import('ebb-web');
        const { searchBox } = await import('/examples/search-box.js');
        document.body.innerHTML = '<input><select size="8"></select>';
        globalThis.rt = new Runtime(hostOf(globalThis));
        globalThis.box = rt.region({ name: 'search box' });
        searchBox(box, document.querySelector('input'), document.querySelector('select'));
        document.querySelector('input').focus();
        await new Promise((resolve) => setTimeout(resolve));
    });
    await page.type('e');
    await until(() => api.held.length === 1, 'the search for e to be asked for');
    await page.type('bb');
    const shown = () => [...document.querySelectorAll('option')].map(({ text }) => text).join();
    await page.waitFor(`(${shown})() === 'ebb,ebbing'`, 'the answer to ebb');
    api.held.forEach((send) => send());
    const left = await page.evaluate(async () => {
        box.cancel('the page is left');
        const { status } = await box.done;
        return { status, tasks: rt.stats().tasks };
    });
    assert.deepEqual(left, { status: 'cancelled', tasks: 0 });
    assert.equal(await page.evaluate(shown), 'ebb,ebbing');
    assertQuiet(page);
});

const startUpload = async (bytes) => {
    const { Runtime, hostOf } = await import('ebb-web');
    const { upload } = await import('/examples/upload.js');
    globalThis.rt = new Runtime(hostOf(globalThis));
    globalThis.region = rt.region({ name: 'uploads' });
    globalThis.progress = [];
    globalThis.task = upload(region, new File([new Uint8Array(bytes)], 'tide.bin'), (part) => progress.push(part));
};

test('upload: progress is told, and all of the file arrives', async (t) => {
    const { page, api } = await browser(t, 'blank');
    await page.evaluate(startUpload, 200_000);
    assert.equal(await page.evaluate(() => task.result), '1');
    assert.equal(api.uploads.get('1'), 200_000);
    assert.deepEqual(await page.evaluate(() => [progress.length, progress.at(-1)]), [4, 1]);
    assertQuiet(page);
});

test('upload: a cancel asks the server to drop what it has', async (t) => {
    const { page, api } = await browser(t, 'blank');
    let held = false;
    api.hold = () => (held = true);
    await page.evaluate(startUpload, 200_000);
    await until(() => held, 'the first chunk');
    const status = await page.evaluate(async () => {
        region.cancel('the user has changed his mind');
        return (await region.done).status;
    });
    assert.equal(status, 'cancelled');
    assert.deepEqual(api.log, ['POST /api/upload', 'PUT /api/upload/1?at=0', 'DELETE /api/upload/1']);
    assert.equal(api.uploads.size, 0);
    assertQuiet(page);
});

test('upload: a chunk that the server refuses is a failure, and what it has is dropped', async (t) => {
    const { page, api } = await browser(t, 'blank');
    api.refuse = true;
    await page.evaluate(startUpload, 200_000);
    const told = await page.evaluate(() => task.result.catch((error) => error.message));
    assert.equal(told, 'the server refused the chunk at 0: 507');
    assert.equal(api.uploads.size, 0);
});

test('widgets: a component shows its price, and its region ends with it', async (t) => {
    const { page } = await browser(t, 'react');
    await page.evaluate(async () => {
        const { Runtime, hostOf } = await import('ebb-web');
        const { createElement, createRoot } = await import('react');
        const { Price } = await import('/examples/widgets.js');
        globalThis.rt = new Runtime(hostOf(globalThis));
        globalThis.root = createRoot(document.querySelector('main'));
        root.render(createElement(Price, { rt, symbol: 'EBB' }));
    });
    await page.waitFor(() => document.querySelector('output')?.textContent === '42', 'the price');
    const left = await page.evaluate(async () => {
        root.unmount();
        await rt.close();
        return rt.stats().tasks;
    });
    assert.equal(left, 0);
    assertQuiet(page);
});

test('worker: it counts, tells its progress, and a cancel waits until it has stopped', async (t) => {
    const { page } = await browser(t, 'blank');
    const counted = await page.evaluate(async () => {
        const { Runtime, hostOf } = await import('ebb-web');
        const { countPrimes } = await import('/examples/primes.js');
        globalThis.rt = new Runtime(hostOf(globalThis));
        globalThis.countPrimes = countPrimes;
        return await countPrimes(rt.region(), 100, () => {}).result;
    });
    assert.deepEqual(counted, { found: 25, at: 100 });
    const { status, forced, tasks } = await page.evaluate(async () => {
        const region = rt.region();
        await new Promise((resolve) => countPrimes(region, 1e9, resolve));
        region.cancel('enough');
        const report = await region.done;
        return { ...report, abandoned: [], tasks: rt.stats().tasks };
    });
    assert.deepEqual([status, forced, tasks], ['cancelled', [], 0]);
    assertQuiet(page);
});
