/* The page for everybody: axe on every view in both themes, a small screen, and the keyboard alone. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';

import { Chromium } from '../../tools/chromium.js';
import { installed } from '../../tools/npm.js';
import { Daemon, SOON_MS, onPage as onPageOf, press, says, until } from './services.js';

let axe;
let browser;
let daemon;

const onPage = (use, how) => onPageOf(browser, daemon, use, how);
const active = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.textContent);

before(async () => {
    const [npm, ...started] = await Promise.all([installed(), Chromium.start(), Daemon.start()]);
    axe = readFileSync(npm.file('axe-core/axe.min.js'), 'utf8');
    [browser, daemon] = started;
    await daemon.start('order-1');
    await daemon.start('order-2');
    await daemon.change('instances/order-2/cancel', {});
});
after(async () => {
    await browser?.close();
    await daemon?.end();
});

/** Runs in the page: what axe has to say. */
async function complaints() {
    const { violations } = await globalThis.axe.run();
    return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(' ')}: ${node.failureSummary}`));
}

/** Every view that there is, and one of an instance; each settled. */
async function eachView(page, use) {
    const names = await page.evaluate(() => Array.from(document.querySelectorAll('#views a'), (a) => a.hash.slice(2)));
    assert.ok(names.length >= 3);
    for (const name of [...names, 'instances/order-2']) {
        await page.evaluate((v) => { location.hash = `#/${v}`; }, name);
        await until(page, `.view[data-view="${name.split('/')[0]}"]:not([hidden])`);
        if (name === 'overview') await says(page, '#tree', 'durable/worker.c');
        if (name === 'instances') await says(page, '#instances', 'order-1');
        if (name.includes('/')) await says(page, '#history', 'cancelled');
        await use(name);
    }
}

describe('axe finds nothing', { concurrency: true }, () => {
    for (const width of [360, 1280]) {
        for (const scheme of ['light', 'dark']) {
            it(`at ${width} px, ${scheme}, on any view; and nothing is too wide`, () => onPage(async (page) => {
                await page.evaluate(`${axe}; undefined`);
                await eachView(page, async (name) => {
                    assert.deepEqual(await page.evaluate(complaints), [], name);
                    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
                    assert.ok(wide <= 0, `${name}: ${wide} px too wide`);
                });
                await press(page, '#keys');
                assert.deepEqual(await page.evaluate(complaints), [], 'the keys');
            }, { size: { width, height: 800 }, media: { 'prefers-color-scheme': scheme, 'prefers-reduced-motion': 'reduce' } }));
        }
    }
});

describe('with the keyboard alone', { concurrency: true }, () => {
    it('one comes to the tree and to what a button does, and sees where one is', () => onPage(async (page) => {
        await says(page, '#tree', 'durable/worker.c');
        const been = [];
        for (let i = 0; i < 30 && been.at(-1) !== 'tree'; i++) {
            await page.press('Tab');
            been.push(await active(page));
            const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
            assert.notEqual(outline, 'none', `${been.at(-1)} has the focus and does not show it`);
        }
        assert.equal(been[0], 'Skip to the view');
        for (const one of ['token', 'Overview', 'Instances', 'Explain lifecycle_shutdown#1', 'tree']) assert.ok(been.includes(one), `${one} of ${been}`);
        await page.press('ArrowDown');
        await until(page, '.row[aria-selected="true"][aria-rowindex="3"]');
        await page.press('ArrowUp');
        await page.press('ArrowLeft');
        await until(page, '.row[aria-selected="true"][aria-expanded="false"]');
        await page.waitFor(() => document.querySelector('#tree').ariaRowCount === '2', 'one row', SOON_MS);
        await page.press('ArrowRight');
        await page.waitFor(() => document.querySelector('#tree').ariaRowCount > 5, 'all rows', SOON_MS);
    }));

    it('digits lead to the views, unless one writes or has switched them off', () => onPage(async (page) => {
        await page.press('2');
        await until(page, '.view[data-view="instances"]:not([hidden])');
        await page.evaluate(() => document.querySelector('[name="prefix"]').focus());
        await page.type('1?');
        assert.equal(await page.evaluate(() => document.querySelector('[name="prefix"]').value), '1?');
        await page.evaluate(() => document.activeElement.blur());
        await page.press('?');
        await until(page, 'dialog[open]');
        await press(page, '#single-keys');
        await page.press('Escape');
        await page.press('1');
        assert.equal(await page.evaluate(() => location.hash), '#/instances');
        await press(page, '#keys');
        await press(page, '#single-keys');
    }));
});
