import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { Chromium } from '../chromium.js';
import { serve } from '../serve.js';
import { leftOf, processesOf } from './processes.js';
import { ebb, web } from './served.js';

const html = (body) => `data:text/html,${encodeURIComponent(`<!doctype html><body>${body}`)}`;
const noCode = (error) => !error.message.includes('undefined');

let browser;
let server;
before(async () => {
    server = await serve({ ebb, dir: web });
    browser = await Chromium.start();
});
after(async () => {
    await browser.close();
    await server.stop();
});

/* The limit is for what comes after: to open a page may take long on a machine with much to do. */
async function open(body, timeoutMs) {
    const page = await browser.page();
    await page.goto(html(body));
    page.timeoutMs = timeoutMs ?? page.timeoutMs;
    return page;
}

test('evaluate runs a function with arguments, or text, and gives the value', async () => {
    const page = await open('hello');
    assert.equal(await page.evaluate((a, b) => a + b.c, 1, { c: 2 }), 3);
    assert.equal(await page.evaluate('document.body.textContent'), 'hello');
    assert.equal(await page.evaluate(() => new Promise((end) => setTimeout(end, 5, 'late'))), 'late');
    assert.equal(await page.evaluate(() => 2n ** 64n - 1n), 18446744073709551615n);
    assert.ok(Number.isNaN(await page.evaluate(() => NaN)));
    assert.ok(Object.is(await page.evaluate(() => -0), -0));
    assert.equal(await page.evaluate((x) => x, undefined), undefined);
    const odd = { text: 'ü\u2028"\'`${1}' };
    assert.deepEqual(await page.evaluate((x) => x, odd), odd);
});

test('a large answer comes through the pipe whole', async () => {
    const page = await open('');
    const text = await page.evaluate(() => 'äx'.repeat(1000000));
    assert.equal(text.length, 2000000);
    assert.match(text, /^(äx)+$/);
});

test('evaluate throws what the page throws, with its text', async () => {
    const page = await open('');
    await assert.rejects(page.evaluate(() => { throw new TypeError('boom'); }), /TypeError: boom/);
    await assert.rejects(page.evaluate(() => Promise.reject(new RangeError('far'))), /RangeError: far/);
    await assert.rejects(page.evaluate(() => Promise.reject('just text')), /just text/);
    await assert.rejects(page.evaluate('1 +'), /SyntaxError/);
    await assert.rejects(page.evaluate(() => ({ big: 1n })), noCode);
});

test('a click is one of the mouse, on an element that had to be scrolled to', async () => {
    const page = await open(`<div style="height: 5000px"></div>
        <button onclick="clicked = [event.isTrusted, event.detail]">go</button>`);
    await page.click('button');
    assert.deepEqual(await page.evaluate('clicked'), [true, 1]);
});

test('a click waits for its element to appear and to be enabled', async () => {
    const page = await open('');
    await page.evaluate(() => setTimeout(() => {
        document.body.innerHTML = '<button disabled onclick="clicked = true">go</button>';
        setTimeout(() => (document.querySelector('button').disabled = false), 500);
    }, 200));
    await page.click('button');
    assert.equal(await page.evaluate('clicked'), true);
});

test('a click waits for its element to stand still', async () => {
    const page = await open(`<style>@keyframes in { from { margin-left: 0 } to { margin-left: 400px } }
        button { animation: in 500ms linear both; width: 60px }</style>
        <button onclick="clicked = true">go</button>`);
    await page.click('button');
    assert.equal(await page.evaluate('clicked'), true);
    const left = await page.evaluate("document.querySelector('button').getBoundingClientRect().left");
    assert.ok(left > 400, `it has come to rest, at ${left}`);
});

test('a click on what is covered says what covers it', async () => {
    const page = await open('<button>go</button><div id="veil" style="position: fixed; inset: 0"></div>',
        1000);
    const text = /timed out after 1000 ms: 'button'.*<div id="veil".*covers it/s;
    await assert.rejects(page.click('button'), text);
});

test('keys do what they do for a person', async () => {
    const page = await open('<input><button onclick="presses = (globalThis.presses ?? 0) + 1">go</button>');
    await page.click('input');
    await page.type('Ab 1?é');
    await page.press('Shift+Home');
    await page.press('ArrowRight');
    await page.press('Backspace');
    assert.equal(await page.evaluate("document.querySelector('input').value"), 'Ab 1?');
    await page.press('Control+a');
    await page.type('-');
    await page.press('Alt+x');
    assert.equal(await page.evaluate("document.querySelector('input').value"), '-');
    await page.press('Tab');
    await page.press('Enter');
    await page.press('Space');
    assert.equal(await page.evaluate('presses'), 2);
    await page.press('Shift+Tab');
    assert.equal(await page.evaluate('document.activeElement.tagName'), 'INPUT');
});

test('a key that does not exist is an error that names it', async () => {
    const page = await open('');
    await assert.rejects(page.press('Entre'), /no key 'Entre'/);
    await assert.rejects(page.press('Ctrl+a'), /no modifier 'Ctrl'/);
});

test('waitFor gives the first true answer', async () => {
    const page = await open('');
    await page.evaluate(() => setTimeout(() => (globalThis.late = { value: 7 }), 50));
    assert.equal(await page.waitFor(() => late.value, 'a late value'), 7);
    assert.equal(await page.waitFor((n) => n + late.value, 'a sum', 1000, 1), 8);
});

test('a wait that is too long says for what it was, what it threw and what the console said', async () => {
    const page = await open('<script>console.warn("mind", { gap: 1 })</script>');
    await assert.rejects(page.waitFor(() => document.querySelector('#none').id, 'the missing one', 1000),
        /timed out after 1000 ms: the missing one\nit threw: TypeError.*warning: mind Object \{gap: 1\}/s);
});

test('a page that hangs is a timeout, and the browser can still be used and closed', async () => {
    const page = await open('', 500);
    const hang = () => { for (;;); };
    await assert.rejects(page.evaluate(hang), /timed out after 500 ms: evaluation of .*for \(;;\)/);
    const sign = page.waitFor(() => true, 'a sign of life', 200);
    await assert.rejects(sign, /timed out after 200 ms: a sign of life/);
    assert.equal(await (await open('')).evaluate('1 + 1'), 2);
    await page.close();
});

test('a page that crashes is an error at once', async () => {
    const page = await open('');
    const waiting = page.evaluate(() => new Promise(() => {}));
    page.goto('chrome://crash').catch(() => {});
    await assert.rejects(waiting, /the page crashed/);
});

test('goto fails on a status, on a port where nobody listens, and on a load without end', async () => {
    const page = await browser.page();
    await assert.rejects(page.goto(`${server.url}nosuch.html`), /nosuch\.html: status 404/);
    await assert.rejects(page.goto('http://127.0.0.1:2/'), /ERR_CONNECTION_REFUSED/);
    page.timeoutMs = 300;
    await assert.rejects(page.goto(html('<script>for (;;);</script>')), /timed out after 300 ms: /);
});

test('the console has every message, uncaught error and rejection, and none twice', async () => {
    const page = await open(`<script>
        console.log('text', 1, 2n, [1, 'a'], { a: 1 }, null, undefined, -0);
        console.error(new Error('told'));
        setTimeout(() => { throw new Error('thrown'); });
        Promise.reject(new Error('rejected'));
        Promise.reject(5);
        setTimeout(() => (globalThis.over = true), 20);
    </script>`);
    await page.waitFor('globalThis.over', 'the last timer');
    assert.deepEqual(page.console.map(({ type, text }) => [type, text.split('\n')[0]]).sort(), [
        ['error', 'Error: told'],
        ['exception', 'Error: rejected'],
        ['exception', 'Error: thrown'],
        ['exception', 'Uncaught (in promise) 5'],
        ['log', 'text 1 2n [1, a] Object {a: 1} null undefined -0'],
    ]);
});

test('a quiet page has nothing in its console', async () => {
    const page = await browser.page();
    await page.goto(`${server.url}tools/test/samples/quiet.html`);
    assert.deepEqual(page.console, []);
    assert.deepEqual(page.requests, [`${server.url}tools/test/samples/quiet.html`]);
});

test('an alert is noted and does not stop the page', async () => {
    const page = await open('');
    assert.equal(await page.evaluate(() => confirm('really?')), false);
    assert.deepEqual(page.console, [{ type: 'dialog', text: 'confirm: really?' }]);
});

test('every request of the page, its frames and its workers is noted, the foreign ones apart', async () => {
    const page = await browser.page();
    await page.goto(`${server.url}tools/test/samples/asks.html`);
    await page.waitFor('globalThis.asked', 'all to be asked for');
    const at = (path) => `${server.url}tools/test/samples/${path}`;
    for (const path of ['asks.html', 'asks-worker.js', 'of-worker', 'of-page', 'of-frame'])
        assert.ok(page.requests.includes(at(path)), `${path} in ${page.requests.join(' ')}`);
    assert.deepEqual(page.foreignRequests(server.url).sort(), [
        'http://frame.example/', 'http://page.example/', 'http://worker.example/', 'ws://socket.example/',
    ]);
    assert.ok(page.console.some(({ text }) => text === 'the worker speaks'));
});

test('garbage is collected, though the console had it', async () => {
    const page = await open('');
    await page.evaluate(() => {
        globalThis.kept = new Array(1e6).fill(1.5);
        const lost = { big: new Array(1e6).fill(2.5) };
        console.log(lost);
        globalThis.ref = new WeakRef(lost);
    });
    const before = await page.heapUsed();
    await page.collectGarbage();
    assert.equal(await page.evaluate('ref.deref() === undefined'), true);
    assert.ok(await page.heapUsed() < before - 7e6, 'the heap is at least 7 MB smaller');
    assert.ok(await page.heapUsed() > 7e6, 'what is in use stays');
});

test('media features are emulated and go back', async () => {
    const page = await open('');
    const dark = () => matchMedia('(prefers-color-scheme: dark)').matches;
    const still = () => matchMedia('(prefers-reduced-motion: reduce)').matches;
    await page.emulateMedia({ 'prefers-color-scheme': 'dark', 'prefers-reduced-motion': 'reduce' });
    assert.deepEqual([await page.evaluate(dark), await page.evaluate(still)], [true, true]);
    await page.emulateMedia({});
    assert.deepEqual([await page.evaluate(dark), await page.evaluate(still)], [false, false]);
});

test('a screenshot is a PNG of the size asked for, and the page has its own size again', async (t) => {
    const page = await open('<body style="background: #12f">');
    const dir = mkdtempSync(join(tmpdir(), 'ebb-tools-'));
    t.after(() => rmSync(dir, { recursive: true }));
    const before = await page.evaluate('innerWidth');
    await page.screenshot(join(dir, 'a.png'), { width: 320, height: 200, scale: 2 });
    const png = readFileSync(join(dir, 'a.png'));
    assert.equal(png.toString('latin1', 0, 8), '\x89PNG\r\n\x1a\n');
    assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [640, 400]);
    assert.equal(await page.evaluate('innerWidth'), before);
    await page.viewport({ width: 400, height: 300 });
    await page.screenshot(join(dir, 'b.png'));
    assert.equal(readFileSync(join(dir, 'b.png')).readUInt32BE(16), 400);
    assert.equal(await page.evaluate('innerWidth'), 400);
});

test('an exposed function is called from the page', async () => {
    const page = await browser.page();
    const heard = [];
    await page.expose('tell', (text) => heard.push(text));
    await page.goto(html('<script>tell("one"); tell("two")</script>'));
    await page.evaluate('tell("three")');
    assert.deepEqual(heard, ['one', 'two', 'three']);
});

test('pages do not slow each other down: each one paints', async () => {
    const pages = [await open(''), await open('')];
    const frames = () => new Promise((end) =>
        requestAnimationFrame(() => requestAnimationFrame(() => end(true))));
    for (const page of pages)
        assert.equal(await page.evaluate(frames), true);
});

test('after close() there is no process and no directory, and a command fails at once', async () => {
    const other = await Chromium.start();
    const page = await other.page();
    assert.ok(processesOf(other).length > 3, 'browser, renderer and others');
    const waiting = page.evaluate(() => new Promise(() => {}));
    waiting.catch(() => {});
    await other.close();
    assert.deepEqual(leftOf(other), []);
    await assert.rejects(waiting, /the browser was closed/);
    await assert.rejects(page.evaluate('1'), /the browser was closed/);
    await other.close();
});
