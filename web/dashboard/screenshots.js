/*
 * The pictures of docs/serve.md, made again: node web/dashboard/screenshots.js [DIR]
 *
 * DIR is docs/images if it is left out. The programs are those of the tests: EBB, EBB_APP and EBB_HARBOUR say where they are.
 */
import { join } from 'node:path';

import { Chromium } from '../tools/chromium.js';
import { Daemon, Harbour, onPage, press, says, until } from './test/services.js';

const DIR = process.argv[2] ?? 'docs/images';
const LARGE = { width: 1280, height: 800 };
const NARROW = { width: 360, height: 740 };
const SETTLES_MS = 5000; /* until there is a past to be seen */
const settle = (ms) => new Promise((resolve) => {
    setTimeout(resolve, ms);
});
const scheme = (name) => ({ 'prefers-color-scheme': name });

/** The first row whose region has `text` among its facts: its selector. */
async function rowWith(page, text) {
    const key = await page.waitFor((t) => Array.from(document.querySelectorAll('.row.region'))
        .find((row) => row.textContent.includes(t) && !row.textContent.startsWith('root'))?.dataset.key, `a row with '${text}'`, undefined, text);
    return `.row[data-key="${key}"]`;
}

/** A fleet is cancelled: the picture is of the moment in which its water goes out. */
async function cancelled(browser, name, media, size) {
    const harbour = await Harbour.start(6);
    await onPage(browser, harbour, async (page) => {
        await says(page, '#drains', 'v42');
        const stop = '#drains li:nth-child(2) .acts button:nth-of-type(2)';
        const cancel = `${await rowWith(page, '3 regions')} button`;
        await settle(SETTLES_MS);
        for (const button of [stop, stop]) await press(page, button);
        await says(page, '#drains', 'held by crane');
        for (const button of [cancel, cancel]) await press(page, button);
        await until(page, '.row.region[data-phase="Finalizing"]');
        await page.screenshot(join(DIR, name));
    }, { media, size });
    await harbour.end();
}

/** Orders at different stages, as a list and one of them. */
async function orders(browser) {
    const daemon = await Daemon.start(`sleep 2; echo '"paid"'`);
    for (let i = 1; i <= 9; i++) await daemon.start(`order-${i}`);
    await settle(2000);
    await daemon.change('instances/order-3/cancel', { reason: 'the buyer has left' });
    await daemon.change('instances/order-5/signal', { name: 'hurry', body: { now: true } });
    await settle(3500);
    const shots = [['dashboard-instances.png', 'instances', LARGE, 'light'], ['dashboard-instance.png', 'instances/order-5', LARGE, 'dark']];
    for (const [name, view, size, theme] of shots) {
        await onPage(browser, daemon, async (page) => {
            await until(page, view === 'instances' ? '#instances tbody tr' : '#history tbody tr');
            await page.screenshot(join(DIR, name));
        }, { view, size, media: scheme(theme) });
    }
    await daemon.end();
}

const browser = await Chromium.start();
await cancelled(browser, 'dashboard.png', scheme('light'), LARGE);
await cancelled(browser, 'dashboard-dark.png', scheme('dark'), LARGE);
await cancelled(browser, 'dashboard-narrow.png', scheme('light'), NARROW);
await orders(browser);
await browser.close();
