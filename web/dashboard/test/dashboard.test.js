/* The dashboard as an operator meets it: served by `ebb serve` with a program and a store, in Chromium. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';

import { Chromium } from '../../tools/chromium.js';

const { EBB: ebb = 'build/release/ebb', EBB_APP: app = 'build/release/examples/durable_app.so' } = process.env;
const SOON_MS = 60000;
const PAID = `charge=cat >/dev/null; echo '"paid"'`;

let browser;
let daemon;

/** `ebb serve` in a directory of its own. */
class Daemon {
    static async start() {
        const d = new Daemon();
        d.dir = mkdtempSync(join(tmpdir(), 'ebb-dashboard-'));
        d.process = spawn(resolve(ebb), ['serve', '--listen', '127.0.0.1:0', '--load', resolve(app), '--activity', PAID],
            { cwd: d.dir, stdio: ['ignore', 'pipe', 'inherit'] });
        d.ended = once(d.process, 'exit');
        const lines = createInterface({ input: d.process.stdout });
        [d.url] = await once(lines, 'line');
        d.token = readFileSync(join(d.dir, '.ebb/token'), 'utf8').trim();
        return d;
    }

    async stop(signal = 'SIGTERM') {
        this.process.kill(signal);
        const [code] = await this.ended;
        return code;
    }

    async end() {
        await this.stop('SIGKILL');
        rmSync(this.dir, { recursive: true, force: true });
    }

    async start(id) {
        const response = await fetch(`${this.url}api/v1/instances`, {
            method: 'POST',
            headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
            body: JSON.stringify({ name: 'order', id, input: { seat: 4 } }),
        });
        assert.equal(response.status, 201);
    }
}

/** The page of its own daemon, with the token or without; it asks nobody else for anything, and complains of nothing. */
async function onPage(use, { hash = `#token=${daemon.token}`, view = 'overview', size = { width: 1280, height: 800 }, quiet = true } = {}) {
    const page = await browser.page({ timeoutMs: SOON_MS });
    await page.viewport(size);
    await page.goto(daemon.url + hash);
    await until(page, '[data-link="live"]');
    await page.evaluate((v) => { location.hash = `#/${v}`; }, view);
    await use(page);
    if (quiet) assert.deepEqual(page.console, [], 'the console');
    assert.deepEqual(page.foreignRequests(daemon.url), [], 'requests to other hosts');
    await page.close();
}

const until = (page, selector) => page.waitFor((s) => document.querySelector(s) !== null, selector, SOON_MS, selector);
const row = (table, key) => `#${table} tr[data-key="${key}"]`;

function says(page, selector, text) {
    const has = (s, t) => document.querySelector(s)?.textContent.includes(t) ?? false;
    return page.waitFor(has, `'${text}' in ${selector}`, SOON_MS, selector, text);
}

/* The tree above grows while a mouse is on its way to what stands below it. */
const press = (page, selector) => page.evaluate((s) => {
    const element = document.querySelector(s);
    element.focus();
    element.click();
}, selector);

before(async () => {
    [browser, daemon] = await Promise.all([Chromium.start(), Daemon.start()]);
});
after(async () => {
    await browser?.close();
    await daemon?.end();
});

describe('the tree', () => {
    it('has the regions and the tasks with what they wait for', () => onPage(async (page) => {
        await says(page, '#tree', 'durable/worker.c');
        await says(page, '#tree', 'waits for accept begun at http/server.c');
        await says(page, '#service', `process ${daemon.process.pid}`);
        await says(page, '#drains', 'lifecycle_shutdown#1');
        assert.equal(await page.evaluate(() => location.hash), '#/overview'); /* a token does not stay in the address */
    }));

    it('keeps a region and a task of the same number apart', () => onPage(async (page) => {
        await says(page, '#tree', 'durable/worker.c');
        const { loops: [{ tree }] } = await (await fetch(`${daemon.url}api/v1/live`)).json();
        const tasks = new Set(tree.map((node) => node.task));
        assert.ok(tree.some((node) => tasks.has(node.region)), 'no number of both');
        for (let n = 0; n < 3; n++) { /* events, of which each writes the row of the worker's region */
            await page.evaluate(() => { for (const tr of document.querySelectorAll('#tree tbody tr')) tr.cells[3].textContent = 'old'; });
            await page.waitFor(() => Array.from(document.querySelectorAll('#tree tbody tr'))
                .some((tr) => tr.cells[3].textContent !== 'old'), 'an event', SOON_MS);
        }
        const known = ['Open', 'Closing', 'Draining', 'Finalizing', 'Closed'];
        const mixed = await page.evaluate((ofRegions) => Array.from(document.querySelectorAll('#tree tbody tr'))
            .filter((tr) => (tr.dataset.kind === 'region') !== ofRegions.includes(tr.cells[1].textContent))
            .map((tr) => `${tr.dataset.kind} ${tr.cells[0].title} ${tr.cells[1].textContent}`), known);
        assert.deepEqual(mixed, []);
    }));

    it('keeps the focus while it changes', () => onPage(async (page) => {
        await until(page, '#drains button');
        await page.evaluate(() => document.querySelector('#drains button').focus());
        const tasks = await page.evaluate(() => document.querySelectorAll('#tree tbody tr').length);
        await daemon.start('one');
        await page.waitFor((n) => document.querySelectorAll('#tree tbody tr').length !== n, 'a change', SOON_MS, tasks);
        assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Explain lifecycle_shutdown#1');
    }));

    it('explains a workflow, refuses to extend one that does not drain, and shows its log', () => onPage(async (page) => {
        await until(page, '#drains button');
        await press(page, '#drains button:nth-of-type(1)');
        await says(page, '#explained', 'lifecycle_shutdown#1 is IDLE');
        await press(page, '#drains button:nth-of-type(3)');
        await says(page, '#said', 'extend is not allowed in IDLE');
        await press(page, '#drains button:nth-of-type(5)');
        await says(page, '#explained', 'opened');
        await says(page, '#explained', 'ERR_CANCEL_INVALID_PHASE  IDLE -> IDLE  {"trigger":"extend"}');
    }, { quiet: false })); /* Chromium notes a refusal on the console */
});

describe('instances', () => {
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
        await press(page, '#token');
        await page.type(daemon.token);
        await press(page, '#access button');
        await says(page, '#said', 'the token is used in this tab');
        await press(page, `${row('instances', 'order-8')} button`);
        await says(page, row('instances', 'order-8'), 'Cancelled');
    }, { hash: '', view: 'instances', quiet: false }));
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
    }, { quiet: false }));
});
