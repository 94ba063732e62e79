// only: node
/*
 * What is recorded on the real event loop of a browser, or of Node, replays natively to the same trace, byte for
 * byte, and keeps every rule.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

import { Chromium } from '../../tools/chromium.js';
import { serve } from '../../tools/serve.js';
import { record } from '../recorded.js';

const EBB = process.env.EBB ?? 'build/release/ebb';
const DIR = fileURLToPath(new URL('../..', import.meta.url));

async function inChromium(t) {
    const server = await serve({ ebb: EBB, dir: DIR });
    t.after(() => server.stop());
    const browser = await Chromium.start();
    t.after(() => browser.close());
    const page = await browser.page();
    await page.goto(`${server.url}parity/page.html`);
    const text = await page.evaluate(async () => {
        const { record: run } = await import('/parity/recorded.js');
        const { trace, journal, counts, stats } = await run();
        const coded = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
        return JSON.stringify({ trace: coded(trace), journal: coded(journal), counts, stats });
    });
    const { trace, journal, ...rest } = JSON.parse(text);
    return { trace: Buffer.from(trace, 'base64'), journal: Buffer.from(journal, 'base64'), ...rest };
}

function ebb(...args) {
    return execFileSync(EBB, args, { encoding: 'utf8' });
}

function assertReplays(t, { trace, journal, counts, stats }) {
    const dir = mkdtempSync(path.join(tmpdir(), 'ebb-recorded-'));
    t.after(() => rmSync(dir, { recursive: true }));
    const file = (name) => path.join(dir, name);
    writeFileSync(file('a.trace'), trace);
    writeFileSync(file('a.journal'), journal);
    assert.match(ebb('trace', 'verify', '--strict', file('a.trace')), /every rule holds/);
    ebb('journal', 'replay', file('a.journal'), '--trace', file('b.trace'));
    assert.ok(readFileSync(file('b.trace')).equals(Buffer.from(trace)), 'the replayed trace has other bytes');
    assert.ok(counts.microtasks > 1 && counts.messages > 1 && counts.timers > 1, JSON.stringify(counts));
    assert.equal(stats.tasks, 0);
    assert.ok(stats.abandoned >= 1 && stats.leaks >= 1, JSON.stringify(stats)); /* more on a busy machine */
    t.diagnostic(`${stats.polls} polls, ${JSON.stringify(counts)}, ${trace.length} bytes of trace`);
}

test('a run on the event loop of Node replays natively to the same bytes', async (t) => {
    assertReplays(t, await record());
});

test('a run on the event loop of Chromium replays natively to the same bytes', async (t) => {
    assertReplays(t, await inChromium(t));
});
