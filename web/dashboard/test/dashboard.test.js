/* The dashboard as an operator meets it: served by `ebb serve` with a program and a store, in Chromium. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { Chromium } from '../../tools/chromium.js';
import { Daemon, SOON_MS, onPage as onPageOf, press, says, until, write } from './services.js';

let browser;
let daemon;

const onPage = (use, how) => onPageOf(browser, daemon, use, how);
const row = (table, key) => `#${table} tr[data-key="${key}"]`;

before(async () => {
    [browser, daemon] = await Promise.all([Chromium.start(), Daemon.start()]);
});
after(async () => {
    await browser?.close();
    await daemon?.end();
});

describe('a message', () => {
    it('of one view is taken back when another is looked at', () => onPage(async (page) => {
        await says(page, '#said', 'there is no instance none');
        await page.evaluate(() => { location.hash = '#/machines'; });
        await until(page, '.view[data-view="machines"]:not([hidden])');
        const said = await page.evaluate(() => [document.querySelector('#said').textContent, 'bad' in document.querySelector('#said').dataset]);
        assert.deepEqual(said, ['', false]);
    }, { view: 'instances/none', quiet: false }));
});

describe('a workflow', () => {
    it('has the calls that its state allows', () => onPage(async (page) => {
        const allowed = await page.evaluate(async () => {
            const { Drains } = await import('/assets/drains.js');
            const view = new Drains({ say() {}, ask() {}, change() {} });
            const w = { workflow: '1', number: 1, type: 'stop', name: '', budget_ms: 10, in_flight: 0, leaks: 0, handlers: [] };
            const calls = (state, request) => {
                view.show([{ ...w, state, request, elapsed_ms: 0 }], performance.now());
                const buttons = Array.from(view.element.querySelectorAll('.acts button')).slice(1, 4);
                return buttons.filter((b) => b.getAttribute('aria-disabled') === null).map((b) => b.firstChild.textContent).join();
            };
            return [calls('IDLE'), calls('DRAINING', 'USER'), calls('FINALIZING', 'USER'), calls('FINALIZED', 'USER')];
        });
        assert.deepEqual(allowed, ['Stop', 'Extend 5 s,Force', 'Force', '']);
    }));

    it('shows the lines of its audit log', () => onPage(async (page) => {
        await says(page, '#drains', 'lifecycle_shutdown#1');
        await press(page, '#drains .acts button:nth-of-type(5)');
        await says(page, '#drains', 'opened');
    }));
});

describe('instances', { concurrency: true }, () => {
    it('come, are cancelled, and go', () => onPage(async (page) => {
        await daemon.start('order-7');
        await says(page, row('instances', 'order-7'), 'waits for the hurry of its buyer');
        await press(page, `${row('instances', 'order-7')} button`);
        await says(page, '#said', 'cancel of order-7: done');
        await says(page, row('instances', 'order-7'), 'Cancelled');
    }, { view: 'instances' }));

    it('are filtered, and all that match are cancelled after a second look', () => onPage(async (page) => {
        for (const id of ['a-1', 'a-2', 'b-1']) await daemon.start(id);
        await says(page, row('instances', 'b-1'), 'waits');
        await press(page, '[name="prefix"]');
        await page.type('a-');
        await press(page, '#filter [type="submit"]');
        await page.waitFor(() => document.querySelectorAll('#instances tbody tr').length === 2, 'two', SOON_MS);
        await press(page, '#cancel-all');
        await says(page, '#cancel-all', 'Cancel 2 instances: sure?');
        await press(page, '#cancel-all');
        await says(page, '#said', '2 are asked to cancel');
        await says(page, row('instances', 'a-2'), 'Cancelled');
        const response = await fetch(`${daemon.url}api/v1/instances/b-1`);
        assert.equal((await response.json()).state, 'Running');
    }, { view: 'instances' }));

    it('are not changed without the token, until it is given', () => onPage(async (page) => {
        await daemon.start('order-8');
        await until(page, row('instances', 'order-8'));
        await press(page, `${row('instances', 'order-8')} button`);
        await says(page, '#said', 'there is no token');
        assert.match(await page.evaluate(() => document.querySelector('#token').placeholder), /^none/);
        await press(page, '#token');
        await page.type(daemon.token);
        await press(page, '#access button');
        await says(page, '#said', 'the token is used in this tab');
        assert.equal(await page.evaluate(() => document.querySelector('#token').placeholder), 'in use');
        await press(page, `${row('instances', 'order-8')} button`);
        await says(page, row('instances', 'order-8'), 'Cancelled');
    }, { hash: '', view: 'instances', quiet: false }));
});

describe('a list of instances', { concurrency: true }, () => {
    it('has pages', () => onPage(async (page) => {
        await Promise.all(Array.from({ length: 60 }, (_, i) => daemon.start(`page-${String(i).padStart(2, '0')}`)));
        await write(page, '[name="prefix"]', 'page-');
        await press(page, '#filter [type="submit"]');
        await page.waitFor(() => { /* not the list of before the filter */
            const ids = Array.from(document.querySelectorAll('#instances tbody th'), (th) => th.textContent);
            return ids.length === 50 && ids.every((id) => id.startsWith('page-'));
        }, 'the first page', SOON_MS);
        await press(page, '#instances-next');
        await says(page, '.view[data-view="instances"]', 'Page 2, 10 instances');
        await until(page, row('instances', 'page-59'));
        await press(page, '#instances-back');
        await says(page, '.view[data-view="instances"]', 'Page 1, 50 instances');
    }, { view: 'instances' }));

    it('has those cancelled that are selected', () => onPage(async (page) => {
        for (const id of ['s-1', 's-2', 's-3']) await daemon.start(id);
        await write(page, '[name="prefix"]', 's-');
        await press(page, '#filter [type="submit"]');
        await page.waitFor(() => document.querySelectorAll('#instances tbody tr').length === 3, 'three', SOON_MS);
        await press(page, `${row('instances', 's-1')} input`);
        await press(page, `${row('instances', 's-3')} input`);
        await says(page, '#cancel-selected', 'Cancel 2 selected');
        await press(page, '#cancel-selected');
        await says(page, '#cancel-selected', 'Cancel 2: sure?');
        await press(page, '#cancel-selected');
        await says(page, row('instances', 's-1'), 'Cancelled');
        await says(page, row('instances', 's-3'), 'Cancelled');
        assert.equal(await daemon.state('s-2'), 'Running');
    }, { view: 'instances' }));
});

describe('one instance', { concurrency: true }, () => {
    const verb = (n) => `#verbs button:nth-of-type(${n})`;

    it('has its history, and gets a signal whose body is JSON', async () => {
        await daemon.start('one-1');
        await onPage(async (page) => {
            await says(page, row('history', '6'), 'timer_created');
            const label = await page.evaluate(() => document.querySelector('#timeline').ariaLabel);
            assert.match(label, /3 steps, not over: event hurry, timer timer/);
            await write(page, '[name="signal"]', 'hurry');
            await write(page, '#signal textarea', '{"now": tru}');
            await press(page, '#signal [type="submit"]');
            await says(page, '#signal-wrong', 'no JSON');
            assert.equal(await daemon.state('one-1'), 'Running');
            await write(page, '#signal textarea', '{"now":true}');
            await press(page, '#signal [type="submit"]');
            await says(page, '#said', 'signal of one-1: done');
            await says(page, '#instance-state', 'Completed');
            await says(page, '#history', '"hurry {"now":true}'.slice(1));
        }, { view: 'instances/one-1' });
    });

    it('is reset to an event, after a second look, and terminated', async () => {
        await daemon.start('one-2');
        assert.equal(await daemon.change('instances/one-2/signal', { name: 'hurry' }), 202);
        await onPage(async (page) => {
            await says(page, '#instance-state', 'Completed');
            await press(page, `${row('history', '3')} button`);
            await says(page, `${row('history', '3')} button`, 'Reset to 3: sure?');
            await press(page, `${row('history', '3')} button`);
            await says(page, '#said', 'reset of one-2');
            await says(page, '#history', 'reset');
            await daemon.start('one-3');
            await page.evaluate(() => { location.hash = '#/instances/one-3'; });
            await says(page, '#instance-title', 'one-3');
            await says(page, row('history', '6'), 'timer_created');
            await write(page, '[name="reason"]', 'by mistake');
            await press(page, verb(2));
            await says(page, verb(2), 'Terminate: sure?');
            await press(page, verb(2));
            await says(page, '#instance-state', 'Terminated');
            await says(page, '#history', 'by mistake');
        }, { view: 'instances/one-2' });
    });
});

/* The last: it stops the service. */
describe('the page', () => {
    it('has a name for each control, and fits a small screen', () => onPage(async (page) => {
        await daemon.start('order-9');
        await until(page, row('instances', 'order-9'));
        const nameless = await page.evaluate(() => Array.from(document.querySelectorAll('button, input, select'))
            .filter((e) => !(e.ariaLabel || e.textContent.trim() || e.labels?.length > 0)).map((e) => e.outerHTML));
        assert.deepEqual(nameless, []);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${wide} px too wide`);
    }, { view: 'instances', size: { width: 360, height: 740 } }));

    it('says that the service has gone', () => onPage(async (page) => {
        assert.equal(await daemon.stop(), 0);
        await until(page, '[data-link="lost"]');
        await says(page, '#link', 'the service does not answer');
    }, { quiet: false }));
});
