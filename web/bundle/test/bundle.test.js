/*
 * The package as npm packs it, in bundles that Vite and webpack make of it, in Chromium: what is in them, and that
 * they run. $EBB and $EBB_WEB are what the other tests of the pages have.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { Chromium } from '../../tools/chromium.js';
import { installed } from '../../tools/npm.js';
import { serve } from '../../tools/serve.js';

const { EBB: ebb = 'build/release/ebb', EBB_WEB: web = 'build/wasm/web' } = process.env;
const APP = fileURLToPath(new URL('../app', import.meta.url));
const SMALL = 64 * 1024; /* more than the code without the text of the module, minified; that text is 148 KB */
const wasm = readFileSync(join(web, 'ebb-web/ebb.wasm'));
const dir = mkdtempSync(join(tmpdir(), 'ebb-bundle-'));
let npm;
let browser;

before(async () => {
    [npm, browser] = await Promise.all([installed(), Chromium.start()]);
});
after(async () => {
    await browser?.close();
    rmSync(dir, { recursive: true });
});

/** A project with that main.js and the package in its node_modules, as npm would put it there. */
function project(name, main) {
    const root = join(dir, name);
    cpSync(APP, root, { recursive: true });
    cpSync(join(APP, main), join(root, 'main.js'));
    writeFileSync(join(root, 'package.json'), '{ "type": "module" }');
    const packed = execFileSync('npm', ['pack', '--silent', '--pack-destination', root], {
        cwd: join(web, 'ebb-web'), encoding: 'utf8',
    });
    const to = join(root, 'node_modules/ebb-web');
    mkdirSync(to, { recursive: true });
    execFileSync('tar', ['-xzf', join(root, packed.trim()), '-C', to, '--strip-components=1']);
    return root;
}

async function withVite(root) {
    const { build } = await import(pathToFileURL(npm.file('vite/dist/node/index.js')).href); /* its ES module */
    await build({ root, base: './', logLevel: 'error', configFile: false, build: { assetsInlineLimit: 0 } });
}

async function withWebpack(root) {
    const { default: webpack } = await npm.load('webpack');
    const output = { path: join(root, 'dist'), filename: 'main.js', publicPath: './' };
    const compiler = webpack({ mode: 'production', context: root, entry: './main.js', output });
    const stats = await new Promise((done, failed) => {
        compiler.run((error, result) => (error === null ? done(result) : failed(error)));
    });
    await new Promise((done) => compiler.close(done));
    assert.deepEqual(stats.toJson({ all: false, errors: true }).errors, []);
    cpSync(join(root, 'index.html'), join(root, 'dist/index.html'));
}

/** The scripts of a bundle as one text, and its wasm files. */
function contents(root) {
    const files = readdirSync(join(root, 'dist'), { recursive: true });
    const read = (name) => readFileSync(join(root, 'dist', name));
    return {
        scripts: files.filter((name) => name.endsWith('.js')).map((name) => read(name).toString()).join('\n'),
        modules: files.filter((name) => name.endsWith('.wasm')).map(read),
    };
}

/** How its task ended, in Chromium, and what was asked for. */
async function ran(root) {
    const server = await serve({ ebb, dir: join(root, 'dist') });
    const page = await browser.page();
    try {
        await page.goto(server.url);
        await page.waitFor(() => document.body.dataset.ended !== undefined, 'the end of the task');
        const asked = await page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => name));
        const ended = await page.evaluate(() => document.body.dataset.ended);
        return { ended, fetched: asked.filter((url) => url.endsWith('.wasm')).length };
    } finally {
        await page.close();
        await server.stop();
    }
}

const hasText = (scripts) => scripts.includes(wasm.toString('base64'));

for (const [bundler, build] of Object.entries({ vite: withVite, webpack: withWebpack })) {
    test(`${bundler}: 'ebb-web' has its module in the bundle, and fetches nothing`, async () => {
        const root = project(`${bundler}-whole`, 'whole.js');
        await build(root);
        const { scripts, modules } = contents(root);
        assert.equal(hasText(scripts), true);
        assert.equal(modules.length, 0);
        assert.deepEqual(await ran(root), { ended: 'cancelled USER enough', fetched: 0 });
    });

    test(`${bundler}: 'ebb-web/core' leaves the text out, and runs the file beside the bundle`, async (t) => {
        const root = project(`${bundler}-core`, 'core.js');
        await build(root);
        const { scripts, modules } = contents(root);
        t.diagnostic(`${scripts.length} bytes of JavaScript, ${modules[0]?.length} of wasm`);
        assert.equal(hasText(scripts), false);
        assert.ok(scripts.length < SMALL, `${scripts.length} bytes`);
        assert.deepEqual(modules, [wasm]);
        assert.deepEqual(await ran(root), { ended: 'cancelled USER enough', fetched: 1 });
    });
}
