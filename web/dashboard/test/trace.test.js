/* Captures on the page: recorded from `ebb serve`, read as lanes, walked by keyboard, and drawn fast enough. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';

import { Chromium } from '../../tools/chromium.js';
import { readTrace } from '../trace_read.js';

const { EBB: ebb = 'build/release/ebb', EBB_APP: app = 'build/release/examples/durable_app.so' } = process.env;
const SOON_MS = 60000;
const PAID = `charge=cat >/dev/null; echo '"paid"'`;
const CONTEXT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

let browser;
let daemon;

class Daemon {
    static async start() {
        const d = new Daemon();
        d.dir = mkdtempSync(join(tmpdir(), 'ebb-trace-'));
        d.process = spawn(resolve(ebb), ['serve', '--listen', '127.0.0.1:0', '--load', resolve(app), '--activity', PAID],
            { cwd: d.dir, stdio: ['ignore', 'pipe', 'inherit'] });
        d.ended = once(d.process, 'exit');
        [d.url] = await once(createInterface({ input: d.process.stdout }), 'line');
        d.token = readFileSync(join(d.dir, '.ebb/token'), 'utf8').trim();
        return d;
    }

    ask(path, body, headers = {}) {
        return fetch(`${this.url}api/v1/${path}`, {
            method: body === undefined ? 'GET' : 'POST',
            headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json', ...headers },
            body: body === undefined ? undefined : JSON.stringify(body),
        });
    }

    async order(id) {
        const response = await this.ask('instances', { name: 'order', id, input: { seat: 4 } }, { traceparent: CONTEXT });
        assert.equal(response.status, 201);
    }

    async has(id, state) {
        for (;;) {
            const said = await (await this.ask(`instances/${id}`)).json();
            if (said.state === state) return;
            await new Promise((again) => { setTimeout(again, 50); });
        }
    }

    async end() {
        this.process.kill('SIGKILL');
        await this.ended;
        rmSync(this.dir, { recursive: true, force: true });
    }
}

async function onPage(use) {
    const page = await browser.page({ timeoutMs: SOON_MS });
    await page.viewport({ width: 1280, height: 1400 });
    await page.goto(`${daemon.url}#token=${daemon.token}`);
    await page.waitFor(() => document.querySelector('[data-link="live"]') !== null, 'live', SOON_MS);
    await page.evaluate(() => { location.hash = '#/trace'; });
    await page.waitFor(() => document.querySelector('#trace canvas') !== null, 'the view', SOON_MS);
    await use(page);
    assert.deepEqual(page.console, [], 'the console');
    assert.deepEqual(page.foreignRequests(daemon.url), [], 'requests to other hosts');
    await page.close();
}

const textOf = (page, selector) => page.evaluate((s) => document.querySelector(s).textContent, selector);
const press = (page, selector) => page.evaluate((s) => document.querySelector(s).click(), selector);
const key = (page, name) => page.evaluate((k) => document.querySelector('#trace canvas')
    .dispatchEvent(new KeyboardEvent('keydown', { key: k, bubbles: true, cancelable: true })), name);

before(async () => {
    [browser, daemon] = await Promise.all([Chromium.start(), Daemon.start()]);
});
after(async () => {
    await browser?.close();
    await daemon?.end();
});

describe('the reader', () => {
    it('joins a request, its instance and its activity by arrows', async () => {
        assert.equal((await daemon.ask('trace/start', { seconds: 60 })).status, 202);
        await daemon.order('read-1');
        assert.equal((await daemon.ask('instances/read-1/signal', { name: 'hurry' })).status, 202);
        await daemon.has('read-1', 'Completed');
        assert.equal((await daemon.ask('trace/stop', {})).status, 200);
        const trace = readTrace(new Uint8Array(await (await daemon.ask('trace')).arrayBuffer()));
        const named = (name) => trace.lanes.findIndex((lane) => lane.name === name);
        assert.ok(named('instance read-1') > 0, trace.lanes.map((lane) => lane.name).join('\n'));
        assert.ok(named('activity charge') > 0);
        const reached = new Set([0]);
        for (let n = -1; n !== reached.size;) {
            n = reached.size;
            for (const { from, to } of trace.arrows) if (reached.has(from)) reached.add(to);
        }
        assert.ok(reached.has(named('instance read-1')) && reached.has(named('activity charge')));
        for (const { slices } of trace.lanes) {
            slices.forEach((slice, i) => {
                assert.ok(slice.to >= slice.from && (i === 0 || slice.from >= slices[i - 1].to), 'one after the other');
            });
        }
    });

    it('reads a file that was cut short, and refuses what is no trace', async () => {
        const bytes = new Uint8Array(await (await daemon.ask('trace')).arrayBuffer());
        const whole = readTrace(bytes);
        const part = readTrace(bytes.subarray(0, Math.floor(bytes.length / 2)));
        assert.ok(part.events > 0 && part.events < whole.events);
        assert.throws(() => readTrace(new TextEncoder().encode('{"error":{}}')), /no trace/);
    });
});

describe('the page', () => {
    it('records, shows lanes, and is walked by keyboard', () => onPage(async (page) => {
        await page.evaluate(() => {
            const seconds = document.querySelector('#trace [name="seconds"]');
            seconds.value = '2';
            document.querySelector('#trace form').requestSubmit();
        });
        await daemon.order('page-1');
        await page.waitFor(() => /\d+ events in \d+ lanes/.test(document.querySelector('#said').textContent), 'a trace', SOON_MS);
        await page.waitFor(() => document.querySelectorAll('#lane-slices tbody tr').length > 0, 'slices', SOON_MS);
        const first = await textOf(page, '#lane-title');
        await key(page, 'ArrowDown');
        const second = await textOf(page, '#lane-title');
        assert.notEqual(second, first);
        await key(page, 'ArrowUp');
        assert.equal(await textOf(page, '#lane-title'), first);
        const rows = () => page.evaluate(() => Array.from(document.querySelectorAll('#lane-slices tbody tr'), (tr) => tr.textContent).join('|'));
        const all = await rows();
        for (let n = 0; n < 12; n++) await key(page, '+');
        await key(page, 'ArrowRight');
        assert.notEqual(await rows(), all);
        await key(page, 'Home');
        assert.equal(await rows(), all);
        await press(page, '#lane-slices tbody button');
        await press(page, '#trace-all');
        assert.equal(await rows(), all);
        const painted = await page.evaluate(() => {
            const canvas = document.querySelector('#trace canvas');
            const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            return new Set(new Uint32Array(data.buffer)).size;
        });
        assert.ok(painted > 8, `${painted} colours`);
    }));

    it('draws no more arrows than can be told apart, and says so', () => onPage(async (page) => {
        const crowds = await page.evaluate(async () => {
            const { Lanes } = await import('/assets/lanes.js');
            document.querySelector('#trace-view').hidden = false;
            const lanes = new Lanes(document.querySelector('#trace canvas'), () => {});
            const lane = (name) => ({ kind: 'task', name, slices: [{ from: 0, to: 1e9, name, phase: 'Running' }] });
            const arrows = Array.from({ length: 500 }, (_, i) => ({ from: 0, at: i * 2e6, to: 1, end: i * 2e6 + 1000 }));
            lanes.show({ lanes: [lane('a'), lane('b'), lane('c')], arrows, from: 0, to: 1e9 });
            const all = lanes.crowd;
            lanes.zoom(0.1);
            const closer = lanes.crowd;
            lanes.all();
            lanes.select(2);
            return [all, closer, lanes.crowd];
        });
        assert.deepEqual(crowds, [500, 0, 0]);
    }));

    it('draws 50,000 events in less than 50 ms a frame', () => onPage(async (page) => {
        const { events, median } = await page.evaluate(async () => {
            const { Lanes } = await import('/assets/lanes.js');
            const { readTrace: read } = await import('/assets/trace_read.js');
            const [RECORD, BLOCK, TASKS, POLLS] = [32, 127, 400, 60];
            const records = [];
            const say = (type, { phase = 0, value = 0, task = 0, region = 0, other = 0 }) => records.push([type, phase, value, task, region, other]);
            for (let t = 1; t <= TASKS; t++) say(30, { phase: 1, task: t, region: 1 });
            for (let p = 0; p < POLLS; p++) {
                for (let t = 1; t <= TASKS; t++) {
                    const now = (p * TASKS + t) * 10000;
                    say(1, { other: now });
                    say(31, { phase: 2, value: 3, task: t, region: 1 });
                    if (t % 7 === 0) say(32, { phase: 2, value: 3, task: (t % TASKS) + 1, region: 1 });
                    say(48, { phase: 2, task: t, region: 1, other: now + 8000 });
                }
            }
            const blocks = Math.ceil(records.length / BLOCK);
            const bytes = new Uint8Array(64 + blocks * RECORD + records.length * RECORD);
            const view = new DataView(bytes.buffer);
            bytes.set(new TextEncoder().encode('EBBTRACE'));
            records.forEach(([type, phase, value, task, region, other], i) => {
                const at = 64 + (Math.floor(i / BLOCK) + 1 + i) * RECORD;
                if (i % BLOCK === 0) {
                    view.setUint32(at - RECORD, 0x4b4c4245, true);
                    view.setUint32(at - RECORD + 4, Math.min(BLOCK, records.length - i), true);
                }
                bytes[at] = type;
                bytes[at + 1] = phase;
                view.setUint32(at + 4, value, true);
                view.setUint32(at + 8, 1, true);
                view.setUint32(at + 12, task, true);
                view.setUint32(at + 20, region, true);
                view.setUint32(at + 24, other % 2 ** 32, true);
                view.setUint32(at + 28, Math.floor(other / 2 ** 32), true);
            });
            document.querySelector('#trace-view').hidden = false;
            const lanes = new Lanes(document.querySelector('#trace canvas'), () => {});
            const trace = read(bytes);
            lanes.show(trace);
            await new Promise((drawn) => { requestAnimationFrame(() => requestAnimationFrame(drawn)); });
            const took = [];
            for (let n = 0; n < 60; n++) {
                if (n % 20 === 0) lanes.all();
                if (n < 30) lanes.zoom(0.8);
                else lanes.pan(n % 2 ? 0.3 : -0.2);
                lanes.select((n * 7) % trace.lanes.length);
                const from = performance.now();
                lanes.paint();
                took.push(performance.now() - from);
            }
            took.sort((a, b) => a - b);
            return { events: trace.events, median: took[30] };
        });
        assert.ok(events > 50000, `${events} events`);
        assert.ok(median < 50, `${median} ms`);
    }));
});
