/* Machines as an operator meets them: a program of `ebb serve --programs`, in Chromium. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';

import { Chromium } from '../../tools/chromium.js';

const { EBB: ebb = 'build/release/ebb' } = process.env;
const SOON_MS = 60000;
const LIGHT = `
protocol Home {
    msg Turn
    msg Later
    msg Blow
    role Light {
        state Off { on Turn@System -> On; on Later@System; }
        state On { on Turn@System -> Off; on Blow@System -> Dead; }
        state Dead;
    }
}
typestate Light : Home::Light {
    fields { room: string }
    fn new(room: string) -> Off { Off { room } }
    state Off { on Turn -> On { On } defer Later; }
    state On { on Turn -> Off { Off } on Blow -> Dead { Dead } }
    state Dead;
}
fn main() { let hall = Light::spawn("hall"); start(hall); let attic = Light::spawn("attic"); start(attic); }
`;

let browser;
let daemon;

class Daemon {
    static async start() {
        const d = new Daemon();
        d.dir = mkdtempSync(join(tmpdir(), 'ebb-machines-'));
        mkdirSync(join(d.dir, 'programs'));
        writeFileSync(join(d.dir, 'programs/lights.ebb'), LIGHT);
        d.process = spawn(resolve(ebb), ['serve', '--listen', '127.0.0.1:0', '--store', 'lab:', '--programs', 'programs'],
            { cwd: d.dir, stdio: ['ignore', 'pipe', 'inherit'] });
        d.ended = once(d.process, 'exit');
        [d.url] = await once(createInterface({ input: d.process.stdout }), 'line');
        d.token = readFileSync(join(d.dir, '.ebb/token'), 'utf8').trim();
        const page = await (await fetch(`${d.url}api/v1/machines`)).json();
        d.ids = page.machines.map((m) => m.id);
        return d;
    }

    async send(message, machine) {
        const response = await fetch(`${this.url}api/v1/programs/lights/${message}`, {
            method: 'POST',
            headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
            body: JSON.stringify({ machine }),
        });
        assert.equal(response.status, 202);
    }

    async end() {
        this.process.kill('SIGKILL');
        await this.ended;
        rmSync(this.dir, { recursive: true, force: true });
    }
}

const until = (page, what, fn, ...args) => page.waitFor(fn, what, SOON_MS, ...args);

function says(page, selector, text) {
    return until(page, `'${text}' in ${selector}`, (s, t) => document.querySelector(s)?.textContent.includes(t) ?? false, selector, text);
}

async function onPage(use, { size = { width: 1280, height: 900 }, quiet = true } = {}) {
    const page = await browser.page({ timeoutMs: SOON_MS });
    await page.viewport(size);
    await page.goto(`${daemon.url}#token=${daemon.token}`);
    await page.evaluate(() => { location.hash = '#/machines'; }); /* their view */
    await until(page, 'two machines', () => document.querySelectorAll('#machines tbody tr').length === 2);
    await use(page);
    if (quiet) assert.deepEqual(page.console, [], 'the console');
    assert.deepEqual(page.foreignRequests(daemon.url), [], 'requests to other hosts');
    await page.close();
}

/** With the keyboard: focus, then Enter. */
async function open(page, id) {
    await page.evaluate((key) => document.querySelector(`#machines tr[data-key="${key}"] .open`).focus(), id);
    await page.press('Enter');
    await says(page, '#machine-title', `Light ${id}`);
}

const lit = (page) => page.evaluate(() => Array.from(document.querySelectorAll('.diagram .state.now title'), (t) => t.textContent).join());

before(async () => {
    [browser, daemon] = await Promise.all([Chromium.start(), Daemon.start()]);
});
after(async () => {
    await browser?.close();
    await daemon?.end();
});

describe('machines', () => {
    it('are listed with how full their mailboxes are', () => onPage(async (page) => {
        const [hall] = daemon.ids;
        await daemon.send('Later', hall);
        await until(page, 'a message', (key) => document.querySelector(`#machines tr[data-key="${key}"] meter`).value === 1, hall);
        await says(page, `#machines tr[data-key="${hall}"]`, '1 of 64');
        await says(page, `#machines tr[data-key="${hall}"]`, 'lights');
    }));

    it('have a picture whose state is lit, and whose last arrow moves', () => onPage(async (page) => {
        const [hall] = daemon.ids;
        await open(page, hall);
        assert.equal(await page.evaluate(() => document.activeElement.id), 'machine-title');
        assert.equal(await lit(page), 'Off');
        assert.equal(await page.evaluate(() => document.querySelectorAll('.diagram .taken').length), 0);
        await says(page, '#machine-queue', 'message Later, deferred');
        await says(page, '#machine-explain', 'deferred message Later');
        await says(page, '#machine-fields', '"room": "hall"');
        await daemon.send('Turn', hall);
        await until(page, 'On is lit', () => document.querySelector('.diagram .state.now title').textContent === 'On');
        const taken = await page.evaluate(() => Array.from(document.querySelectorAll('.diagram .taken'), (p) => p.parentNode.firstChild.textContent));
        assert.deepEqual(taken, ['Off to On: Turn']);
        await says(page, '#machine-state', 'Running, in On');
        assert.match(await page.evaluate(() => document.querySelector('.diagram').getAttribute('aria-label')), /now in On$/);
        await page.evaluate(() => document.querySelector('#machine-close').focus());
        await page.press('Enter');
        assert.equal(await page.evaluate(() => document.querySelector('#machine').hidden), true);
        await daemon.send('Turn', hall);
    }));

    it('have the same in words', () => onPage(async (page) => {
        await open(page, daemon.ids[1]);
        const words = await page.evaluate(() => Array.from(document.querySelectorAll('ul.states li'), (li) => li.textContent));
        assert.deepEqual(words, [
            'Off (first): Turn leads to On; Later waits for another state',
            'On: Turn leads to Off; Blow leads to Dead',
            'Dead: takes nothing',
        ]);
    }));

    it('fit on 360 px, each box inside the picture and beside the others', () => onPage(async (page) => {
        await open(page, daemon.ids[1]);
        const [wide, overlaps] = await page.evaluate(() => {
            const boxes = Array.from(document.querySelectorAll('.diagram .state > rect:first-of-type'), (r) => r.getBoundingClientRect());
            const svg = document.querySelector('.diagram').getBoundingClientRect();
            const out = boxes.filter((b) => b.left < svg.left || b.right > svg.right || b.bottom > svg.bottom || b.top < svg.top);
            const over = boxes.filter((a, i) => boxes.some((b, j) => j > i &&
                a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom));
            return [document.documentElement.scrollWidth, out.length + over.length];
        });
        assert.ok(wide <= 360, `${wide} px`);
        const stops = await page.evaluate(() => Array.from(document.querySelectorAll('#machines td:last-child button'), (b) => b.getBoundingClientRect().right));
        assert.ok(stops.length > 0 && stops.every((right) => right <= 360), `the buttons end at ${stops} px`);
        assert.equal(overlaps, 0);
    }, { size: { width: 360, height: 740 } }));

    it('are filtered', () => onPage(async (page) => {
        await daemon.send('Turn', daemon.ids[1]);
        await page.evaluate(() => document.querySelector('#machines-filter [name="state"]').focus());
        await page.type('On');
        await page.press('Enter');
        await until(page, 'one', () => document.querySelectorAll('#machines tbody tr').length === 1);
        await daemon.send('Turn', daemon.ids[1]);
        await until(page, 'none', () => document.querySelectorAll('#machines tbody tr').length === 0);
        await says(page, '#machines-more', 'No machine lives here.');
    }));

    it('are stopped', () => onPage(async (page) => {
        const [, attic] = daemon.ids;
        await page.evaluate((key) => document.querySelector(`#machines tr[data-key="${key}"] .open`).click(), attic);
        await says(page, '#machine-state', 'Running');
        await page.evaluate((key) => document.querySelector(`#machines tr[data-key="${key}"] td:last-child button`).click(), attic);
        await says(page, '#said', `stop of Light ${attic}: done`);
        await says(page, '#machine-state', 'It has stopped.');
        await until(page, 'one is left', () => document.querySelectorAll('#machines tbody tr').length === 1);
    }, { quiet: false }));
});
