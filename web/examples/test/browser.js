import assert from 'node:assert/strict';
import { after } from 'node:test';

import { Chromium } from '../../tools/chromium.js';
import { serve } from './server.js';

let shared; /* one browser for all tests of a file that need no options */
after(async () => (await shared)?.close());

async function start(t, options) {
    if (options === undefined) return await (shared ??= Chromium.start());
    const own = await Chromium.start(options);
    t.after(() => own.close());
    return own;
}

/** The page of that name, with a server of its own, for one test. */
export async function browser(t, name, options) {
    const { url, api } = await serve(t);
    const chromium = await start(t, options);
    const page = await chromium.page({ timeoutMs: 60_000 });
    t.after(() => options === undefined && page.close());
    const pages = `${url}examples/pages/`;
    await page.goto(`${pages}${name}.html`);
    return { page, pages, api, chromium };
}

/** Nothing was left uncaught in the page. */
export function assertQuiet(page) {
    assert.deepEqual(page.console.filter(({ type }) => type === 'exception' || type === 'error'), []);
}
