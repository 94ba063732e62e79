/*
 * Runs the package's tests in Chromium:
 *
 *     node web/tools/browser-tests.js --ebb build/release/ebb --dir build/wasm/web [FILE...]
 *
 * Each file has a page of its own, as it has a process of its own in Node. Exits with 1 if a test failed or
 * none was run, if a page asked for anything that is not on our own server, or if it had an uncaught error.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { Chromium } from './chromium.js';
import { serve } from './serve.js';

const USAGE = 'usage: node browser-tests.js --ebb EBB --dir DIR [--stall-ms MS] [FILE...]';

/* All tests of a file together may take as long as they like: the limit is on the silence between two. */
const FOREVER_MS = 2 ** 31 - 1;

function options() {
    const { values, positionals } = parseArgs({
        allowPositionals: true,
        options: { ebb: { type: 'string' }, dir: { type: 'string' }, 'stall-ms': { type: 'string' } },
    });
    if (!values.ebb || !values.dir)
        throw new Error(USAGE);
    const dir = resolve(values.dir);
    const files = positionals.length ? positionals.map((file) => within(dir, file)) : allTests(dir);
    return { ebb: values.ebb, dir, files, stallMs: Number(values['stall-ms'] ?? 60000) };
}

function allTests(dir) {
    const names = readdirSync(join(dir, 'ebb-web/test')).filter((name) => name.endsWith('.test.js'));
    return names.sort().map((name) => `ebb-web/test/${name}`);
}

/** A file is named from here or from the served directory. */
function within(dir, file) {
    const isThere = (path) => path.startsWith(`${dir}/`) && existsSync(path);
    const path = [resolve(file), join(dir, file)].find(isThere);
    if (!path)
        throw new Error(`${file} is not in ${dir}`);
    return relative(dir, path);
}

function indented(text) {
    return text.replace(/^/gm, '    ');
}

function print({ name, ok, error, skip, todo, diagnostics = [] }) {
    const note = skip !== undefined ? ` # SKIP ${skip}` : todo !== undefined ? ` # TODO ${todo}` : '';
    console.log(`${ok ? 'ok' : 'not ok'} ${name}${note}`);
    for (const line of diagnostics)
        console.log(`# ${line}`);
    if (!ok)
        console.log(indented(error));
}

/**
 * Counts the tests, and knows which of them run and when one was last heard of. Results are counted as they
 * come, so that a page that hangs takes no result of an earlier test with it.
 */
class Tally {
    passed = 0;
    failed = 0;
    skipped = 0;
    running = [];
    heardAt = 0;

    begin() {
        this.running = [];
    }

    hear({ started, ...result }) {
        this.heardAt = Date.now();
        if (started !== undefined)
            this.running.push(started);
        else
            this.take(result);
    }

    take(result) {
        this.running = this.running.filter((name) => name !== result.name);
        this[!result.ok ? 'failed' : result.skip !== undefined ? 'skipped' : 'passed']++;
        print(result);
    }

    fail(name, error) {
        this.take({ name, ok: false, error });
    }

    get text() {
        const skipped = this.skipped ? `, ${this.skipped} skipped` : '';
        return `${this.passed} passed, ${this.failed} failed${skipped}`;
    }
}

/** The page is done when its promise is; it hangs when it has been silent for too long. */
async function finish(page, tally, file, stallMs) {
    let done = null;
    tally.heardAt = Date.now();
    page.timeoutMs = FOREVER_MS;
    page.evaluate('results.then(() => true)').then((value) => (done = value), (error) => (done = error));
    while (done === null) {
        if (Date.now() - tally.heardAt > stallMs)
            throw new Error(`timed out: nothing has ended in ${stallMs} ms; running: ` +
                (tally.running.at(-1) ?? 'no test'));
        await new Promise((wake) => setTimeout(wake, 20));
    }
    if (done !== true)
        throw done;
}

async function runFile(browser, url, file, tally, stallMs) {
    console.log(`# ${file}`);
    const failedBefore = tally.failed;
    tally.begin();
    const page = await browser.page();
    try {
        await page.expose('report', (text) => tally.hear(JSON.parse(text.replaceAll(url, ''))));
        await page.goto(`${url}tools/tests.html?files=/${encodeURIComponent(file)}`);
        await finish(page, tally, file, stallMs);
    } catch (error) {
        tally.fail(file, error.message);
    }
    judge(page, url, file, tally);
    if (tally.failed > failedBefore)
        console.log(indented(page.consoleText().replaceAll(url, '')));
    await page.close();
}

function judge(page, url, file, tally) {
    const foreign = page.foreignRequests(url);
    if (foreign.length)
        tally.fail(`${file} asks its own host only`, foreign.join('\n'));
    const uncaught = page.console.filter(({ type }) => type === 'exception').map(({ text }) => text);
    if (uncaught.length)
        tally.fail(`${file} has no uncaught error`, uncaught.join('\n'));
}

async function main() {
    const { ebb, dir, files, stallMs } = options();
    const tally = new Tally();
    const server = await serve({ ebb, dir });
    try {
        const browser = await Chromium.start();
        try {
            for (const file of files)
                await runFile(browser, server.url, file, tally, stallMs);
        } finally {
            await browser.close();
        }
    } finally {
        await server.stop();
    }
    console.log(tally.text);
    return tally.failed === 0 && tally.passed > 0 ? 0 : 1;
}

try {
    process.exitCode = await main();
} catch (error) {
    console.error(error.message);
    process.exitCode = 1;
}
