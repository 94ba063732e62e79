/* Regions, tasks and workflows as an operator meets them: what a service of tests has, in Chromium. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { Chromium } from '../../tools/chromium.js';
import { Harbour, SOON_MS, onPage, press, says, until } from './services.js';

const BERTHS = 30;
let browser;
let harbour;

/** The rows that are elements now: their texts by key. */
const rows = (page) => page.evaluate(() =>
    Array.from(document.querySelectorAll('.row'), (row) => [row.dataset.key, row.textContent]));

const withHarbour = (use, how) => () => onPage(browser, harbour, use, how);

/** Selects the row of the fleet with the keyboard, and returns the keys of it and of all that is in it. */
async function toFleet(page) {
    await page.waitFor(() => document.querySelector('#tree').ariaRowCount > 60, 'all regions', SOON_MS);
    await page.evaluate(() => document.querySelector('#tree').focus());
    for (let i = 0; i < 80; i++) {
        const selected = await page.evaluate(() => document.querySelector('.row[aria-selected="true"]').textContent);
        if (selected.includes('3 regions') && !selected.startsWith('root')) break;
        await page.press('ArrowDown');
        await page.waitFor((t) => document.querySelector('.row[aria-selected="true"]').textContent !== t || true, 'a row', SOON_MS, selected);
        await page.evaluate(() => new Promise((end) => requestAnimationFrame(() => requestAnimationFrame(end))));
    }
    return page.evaluate(() => document.querySelector('.row[aria-selected="true"]').dataset.key);
}

before(async () => {
    [browser, harbour] = await Promise.all([Chromium.start(), Harbour.start(BERTHS)]);
});
after(async () => {
    await browser?.close();
    await harbour?.end();
});

describe('the tree', { concurrency: true }, () => {
    it('has the regions and the tasks with what they wait for', withHarbour(async (page) => {
        await says(page, '#tree', 'waits for accept begun at http/server.c');
        await says(page, '#service', `process ${harbour.process.pid}`);
        assert.equal(await page.evaluate(() => location.hash), '#/overview'); /* a token does not stay in the address */
    }));

    it('keeps a region and a task of the same number apart', withHarbour(async (page) => {
        await says(page, '#tree', 'waits for accept');
        const known = ['Open', 'Closing', 'Draining', 'Finalizing', 'Closed'];
        const mixed = await page.evaluate((ofRegions) => Array.from(document.querySelectorAll('.row'))
            .filter((row) => row.dataset.key.startsWith('region') !== ofRegions.includes(row.dataset.phase))
            .map((row) => row.textContent), known);
        assert.deepEqual(mixed, []);
        const numbers = (await rows(page)).map(([key]) => key.split(' ')[1]);
        assert.ok(new Set(numbers).size < numbers.length, 'no number of both');
    }));

    it('has as many elements as can be seen, wherever it is scrolled', withHarbour(async (page) => {
        await page.waitFor(() => document.querySelector('#tree').ariaRowCount > 60, 'all regions', SOON_MS);
        assert.ok((await rows(page)).length < 40);
        await page.evaluate(() => document.querySelector('#tree').focus());
        await page.press('End');
        await page.waitFor(() => document.querySelector('.row[aria-selected="true"]').ariaRowIndex === document.querySelector('#tree').ariaRowCount,
            'the last row', SOON_MS);
        assert.ok((await rows(page)).length < 40);
    }));

    it('shows what a cancel reaches go out by its phases, and lets it go', withHarbour(async (page) => {
        const key = await toFleet(page);
        await page.evaluate(() => {
            globalThis.seen = {};
            new MutationObserver(() => {
                for (const row of document.querySelectorAll('.row')) (globalThis.seen[row.dataset.key] ??= new Set()).add(row.dataset.phase);
            }).observe(document.querySelector('#tree'), { subtree: true, attributes: true, attributeFilter: ['data-phase'] });
        });
        await page.press('Delete');
        await says(page, `.row[data-key="${key}"] button`, 'Cancel 4 regions, 12 tasks?');
        await page.press('Delete');
        await says(page, '#said', 'done');
        await until(page, `.row[data-key="${key}"][data-gone]`);
        await page.waitFor((k) => document.querySelector(`.row[data-key="${k}"]`) === null, 'it to go', SOON_MS, key);
        const phases = await page.evaluate((k) => [...globalThis.seen[k]], key);
        for (const phase of ['Closing', 'Draining', 'Finalizing', 'Closed']) assert.ok(phases.includes(phase), `${phase} of ${phases}`);
        const tasks = await page.evaluate(() => Object.entries(globalThis.seen).filter(([k, s]) => k.startsWith('task') && s.has('Cancelling')).length);
        assert.ok(tasks > 0, 'no task was seen to clean up');
    }));
});

describe('a workflow', () => {
    const card = '#drains li:nth-child(2)';
    const button = (n) => `${card} .acts button:nth-of-type(${n})`;

    it('is explained, and is not extended or forced while it does not drain', withHarbour(async (page) => {
        await says(page, card, 'v42');
        await press(page, button(1));
        await says(page, `${card} pre`, 'is IDLE');
        await press(page, button(3));
        const disabled = await page.evaluate((s) => Array.from(document.querySelectorAll(`${s} button`), (b) => b.ariaDisabled).slice(0, 4), card);
        assert.deepEqual(disabled, [null, null, 'true', 'true']);
        assert.match(await page.evaluate(() => document.querySelector('#said').textContent), /^explain/); /* nothing since */
    }));

    it('keeps the focus while it changes', withHarbour(async (page) => {
        await says(page, card, 'v42');
        await page.evaluate((s) => document.querySelector(s).focus(), button(1));
        const n = await page.evaluate(() => document.querySelector('#tree').ariaRowCount);
        await fetch(`${harbour.url}healthz`); /* a connection more */
        await page.waitFor((m) => document.querySelector('#tree').ariaRowCount !== m, 'a change', SOON_MS, n);
        assert.match(await page.evaluate(() => document.activeElement.textContent), /^Explain rollout_cancel#2 v42/);
    }));

    it('that is stuck says who holds it up, is extended, and is forced', withHarbour(async (page) => {
        await says(page, card, 'v42');
        await press(page, button(2));
        await says(page, button(2), 'Stop: sure?');
        await press(page, button(2));
        await says(page, card, 'held by crane 3/7');
        await says(page, card, 'over its');
        await press(page, button(3));
        await says(page, '#said', '5 s more');
        await page.waitFor((s) => /of 7\.\d s left/.test(document.querySelector(s).textContent), 'more time', SOON_MS, card);
        const left = () => page.evaluate((s) => Number(document.querySelector(`${s} .budget`).style.getPropertyValue('--left')), card);
        const first = await left(); /* it runs down between two events too */
        await page.waitFor((s, f) => Number(document.querySelector(`${s} .budget`).style.getPropertyValue('--left')) < f, 'less', SOON_MS, card, first);
        await press(page, button(4));
        await says(page, button(4), 'Force: sure?');
        await press(page, button(4));
        await says(page, card, 'LEAK_DETECTED'); /* the crane never stops */
        await says(page, card, 'took ');
    }));
});
