/*
 * The pictures of the README and of docs/serve.md, made again: node examples/shop/picture.js [DIR]
 *
 * The shop takes 20 orders a second; one whose bank ignores its cancel was cancelled. DIR is docs/images if it is left out.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

import { Chromium } from '../../web/tools/chromium.js';

const DIR = process.argv[2] ?? 'docs/images';
const { EBB: ebb = 'build/release/ebb', EBB_SHOP: shop = 'build/release/examples/shop.so' } = process.env;
const PAST_MS = 12000; // until the plots have something to show
const settle = (ms) => new Promise((done) => {
    setTimeout(done, ms);
});

const where = mkdtempSync(join(tmpdir(), 'ebb-shop-'));
const service = spawn(resolve(ebb),
    ['serve', '--load', resolve(shop), '--listen', '127.0.0.1:0', '--app-listen', '127.0.0.1:0'],
    { cwd: where, stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, EBB_SHOP_LOAD: '20' } });
const lines = createInterface({ input: service.stdout })[Symbol.asyncIterator]();
const line = async () => (await lines.next()).value;
const dashboard = await line();
await line();
const application = (await line()).replace('application: ', '');
const token = readFileSync(join(where, '.ebb/token'), 'utf8').trim();

const post = (path, body) => fetch(application + path,
    { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
const browser = await Chromium.start();
try {
    const page = await browser.page({ timeoutMs: 60000 });
    await page.viewport({ width: 1280, height: 860 });
    await page.goto(`${dashboard}#token=${token}`);
    await settle(PAST_MS);
    await post('shop/orders', { id: 'order-7', item: 'clock', bank: 'slow' });
    await settle(1000);
    await post('shop/orders/order-7/cancel', {});
    await settle(5000);
    await page.screenshot(join(DIR, 'shop.png'));
    await page.goto(`${application}shop/`);
    await page.click('[data-item="lamp"]');
    await settle(1500);
    await page.viewport({ width: 1280, height: 320 });
    await page.screenshot(join(DIR, 'shop-page.png'));
} finally {
    await browser.close();
    service.kill('SIGKILL');
    await once(service, 'exit');
    rmSync(where, { recursive: true, force: true });
}
