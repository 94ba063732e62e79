/* How a test uses the page: a browser and a server for all of them, a page for each. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Chromium } from '../../tools/chromium.js';
import { serve } from '../../tools/serve.js';

const { EBB: ebb = 'build/release/ebb', EBB_WEB: web = 'build/wasm/web' } = process.env;
export const WIDE = { width: 1280, height: 800 };
export const NARROW = { width: 390, height: 844 };
export const CALM = { 'prefers-reduced-motion': 'reduce' }; /* and it costs less */
export const SOON_MS = 60000;

let server;
let browser;
let files;

export async function start() {
    files = mkdtempSync(join(tmpdir(), 'ebb-playground-'));
    [server, browser] = await Promise.all([serve({ ebb, dir: web }), Chromium.start()]);
}

export async function stop() {
    await browser?.close();
    await server?.stop();
    rmSync(files, { recursive: true, force: true });
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export const row = (name) => `.row[data-name="${name}"]`;

/** Runs in the page: writes down each phase that a row shows, so that none is missed between two looks. */
function keepALog() {
    globalThis.log = [];
    const { log } = globalThis;
    const note = ({ dataset: { name, phase, masked } }) => {
        const before = log.findLast((entry) => entry.name === name);
        if (before?.phase !== phase) log.push({ name, phase, masked });
    };
    const observer = new MutationObserver((changes) => {
        for (const { type, target, addedNodes } of changes) {
            if (type === 'attributes') note(target);
            for (const added of addedNodes) if (added.role === 'treeitem') note(added);
        }
    });
    const tree = document.querySelector('#tree');
    observer.observe(tree, { subtree: true, childList: true, attributeFilter: ['data-phase'] });
}

/** Whether the row went all the way of the protocol: each of its stops says so. */
export async function wentAllTheWay(page, name) {
    await inPhase(page, name, 'Completed');
    const classes = (s) => Array.from(document.querySelectorAll(s), (stop) => stop.className);
    const stops = await page.evaluate(classes, `${row(name)} .track i`);
    assert.deepEqual(stops, ['been', 'been', 'been', 'been', 'here'], name);
}

/**
 * A page of its own. Whatever it is used for, it says nothing on its console and asks nobody else for
 * anything.
 */
export async function onPage(use, { size = WIDE, media = CALM } = {}) {
    const page = await browser.page({ timeoutMs: SOON_MS });
    await page.viewport(size);
    await page.emulateMedia(media);
    await page.goto(`${server.url}playground/`);
    await page.waitFor(() => document.body.dataset.state === 'empty', 'a page that is ready');
    await page.evaluate(keepALog);
    const given = await use(page);
    assert.deepEqual(page.console, [], 'the console');
    assert.deepEqual(page.foreignRequests(server.url), [], 'requests to other hosts');
    await page.close();
    return given;
}

export function until(page, selector, what = selector) {
    return page.waitFor((s) => document.querySelector(s) !== null, what, SOON_MS, selector);
}

export function inPhase(page, name, phase) {
    return until(page, `${row(name)}[data-phase="${phase}"]`, `${name} in ${phase}`);
}

export function phaseOf(page, name) {
    return page.evaluate((s) => document.querySelector(s).dataset.phase, row(name));
}

export function textOf(page, selector) {
    return page.evaluate(async (s) => {
        const frame = () => new Promise((resolve) => {
            requestAnimationFrame(resolve);
        });
        await frame(); /* the page draws once a frame: what it knows is there after the next */
        await frame();
        return document.querySelector(s).textContent;
    }, selector);
}

/** Waits until an element says something. */
export function saying(page, selector, text) {
    const says = (s, t) => document.querySelector(s).textContent.includes(t);
    return page.waitFor(says, `'${text}' in ${selector}`, SOON_MS, selector, text);
}

/** Chooses in a select as its list does: the event is what the page hears. */
export function choose(page, selector, value) {
    return page.evaluate((s, v) => {
        const select = document.querySelector(s);
        select.value = v;
        select.dispatchEvent(new Event('change', { bubbles: true }));
    }, selector, value);
}

/** Clicks, and gives the bytes of the file that the page hands out for that. */
async function download(page, button) {
    await page.evaluate(() => {
        const make = URL.createObjectURL;
        URL.createObjectURL = (blob) => {
            globalThis.handedOut = blob;
            URL.createObjectURL = make;
            return make.call(URL, blob);
        };
        HTMLAnchorElement.prototype.click = function click() {
            globalThis.handedOutAs = this.download;
        };
    });
    await page.click(button);
    const text = await page.evaluate(async () => {
        const bytes = new Uint8Array(await globalThis.handedOut.arrayBuffer());
        return Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
    });
    const name = await page.evaluate(() => globalThis.handedOutAs);
    return { name, bytes: Buffer.from(text, 'latin1') };
}

function run(...args) {
    /* A slow page records more turns: its trace is shown in more than Node's default of 1 MiB. */
    return execFileSync(ebb, args, { encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** What the page recorded holds by the contract's rules, and the journal does it all again. */
export async function verify(page, ...flags) {
    const dir = mkdtempSync(join(files, 'run-'));
    const saved = {};
    for (const what of ['trace', 'journal']) {
        const { name, bytes } = await download(page, `#save-${what}`);
        assert.equal(name, `playground.${what}`);
        saved[what] = join(dir, name);
        writeFileSync(saved[what], bytes);
    }
    assert.match(run('trace', 'verify', '--strict', ...flags, saved.trace), /every rule holds/);
    const compare = flags.includes('--quiescent') ? ['--compare', saved.trace] : []; /* nothing is new */
    assert.match(run('journal', 'replay', saved.journal, ...compare), /operations replayed/);
    return run('trace', 'show', saved.trace);
}
