/*
 * Takes the pictures of the docs: node web/playground/pictures.js docs/images, in the root of the tree, after
 * `make wasm` and `make`.
 */
import { join } from 'node:path';

import { CALM, inPhase, NARROW, onPage, row, start, stop, WIDE } from './test/on-page.js';

const dir = process.argv[2];
if (dir === undefined) throw new Error('usage: node pictures.js DIR');

async function picture(name, size, scheme, use) {
    await onPage(async (page) => {
        await use(page);
        await page.evaluate(() => document.activeElement?.blur());
        await page.screenshot(join(dir, `playground${name}.png`), { ...size, scale: 1 });
    }, { size, media: { ...CALM, 'prefers-color-scheme': scheme } });
}

async function shutdown(page) {
    await page.click('#scene-shutdown');
    await inPhase(page, 'writer', 'Cancelling');
}

await start();
try {
    await picture('', WIDE, 'light', shutdown);
    await picture('-dark', WIDE, 'dark', async (page) => {
        await page.click('#scene-race');
        await inPhase(page, 'blue boat', 'Cancelling');
        await page.click(row('blue boat'));
    });
    await picture('-masked', WIDE, 'light', async (page) => {
        await page.click('#scene-masked');
        await inPhase(page, 'clerk', 'Completed');
        await page.click(row('transfer'));
    });
    await picture('-narrow', NARROW, 'light', shutdown);
} finally {
    await stop();
}
