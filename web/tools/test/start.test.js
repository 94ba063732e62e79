/* How a browser or a server starts, and how it does not. */
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { Chromium } from '../chromium.js';
import { serve } from '../serve.js';
import { leftOf, processesOf } from './processes.js';
import { ebb, web } from './served.js';

const dir = mkdtempSync(join(tmpdir(), 'ebb-tools-'));
after(() => rmSync(dir, { recursive: true }));

function script(name, text) {
    const path = join(dir, name);
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    chmodSync(path, 0o755);
    return path;
}

/* Others may start browsers at the same time: ours are below a directory of our own. */
process.env.TMPDIR = dir;
const profiles = () => readdirSync(dir).filter((name) => name.startsWith('ebb-chromium-'));

test('without a browser the error names the Debian package', async () => {
    await assert.rejects(Chromium.start({ executable: join(dir, 'none') }), /Debian package 'chromium'/);
    assert.deepEqual(profiles(), []);
});

test('a start that fails is tried once more', async () => {
    const flag = join(dir, 'failed-once');
    const executable = script('flaky', `[ -e ${flag} ] || { : > ${flag}; exit 3; }\nexec chromium "$@"`);
    const browser = await Chromium.start({ executable });
    assert.equal(await (await browser.page()).evaluate('1 + 1'), 2);
    await browser.close();
});

test('a start that fails twice is an error with the last words', async () => {
    const log = join(dir, 'starts');
    const executable = script('broken', `echo start >> ${log}; echo no display >&2; sleep 0.2; exit 3`);
    await assert.rejects(Chromium.start({ executable }), /did not start, twice: .*ended \(3\).*no display/s);
    assert.equal(readFileSync(log, 'utf8'), 'start\nstart\n');
    assert.deepEqual(profiles(), []);
});

test('a browser that never answers is an error after the time limit, and it is gone', async () => {
    const executable = script('mute', `echo $$ > ${dir}/pid; exec sleep 60`);
    const starting = Chromium.start({ executable, timeoutMs: 1500 });
    await assert.rejects(starting, /timed out after 1500 ms: Browser.getVersion/);
    assert.deepEqual(processesOf({ pid: Number(readFileSync(join(dir, 'pid'), 'utf8')) }), []);
});

test('arguments of the caller are given on', async () => {
    const browser = await Chromium.start({ args: ['--user-agent=ebb-test'] });
    assert.equal(await (await browser.page()).evaluate('navigator.userAgent'), 'ebb-test');
    await browser.close();
});

test('a server gives its URL, serves, and stops with 0', async () => {
    const server = await serve({ ebb, dir: web });
    assert.match(server.url, /^http:\/\/127\.0\.0\.1:\d+\/$/);
    const answer = await fetch(`${server.url}tools/serve.js`);
    assert.equal(await answer.text(), readFileSync(new URL('../serve.js', import.meta.url), 'utf8'));
    assert.match(answer.headers.get('content-type'), /^text\/javascript/);
    await server.stop();
    await server.stop();
    assert.deepEqual(leftOf(server), []);
    await assert.rejects(fetch(server.url));
});

test('the arguments are: files DIR --port 0', async () => {
    const fake = script('args', `echo "$@" > ${dir}/args; trap 'exit 0' TERM
        echo http://127.0.0.1:1/; sleep 9 & wait`);
    const server = await serve({ ebb: fake, dir: '/some/dir' });
    await server.stop();
    assert.equal(readFileSync(join(dir, 'args'), 'utf8'), 'files /some/dir --port 0\n');
});

test('a server that is not there, ends, is silent or says something else is an error', async () => {
    const start = (name, text) => serve({ ebb: script(name, text), dir: web, timeoutMs: 1500 });
    await assert.rejects(serve({ ebb: join(dir, 'none'), dir: web }), /ENOENT/);
    const ends = start('ends', 'echo bad option >&2; sleep 0.1; exit 2');
    await assert.rejects(ends, /ended at once with code 2.*bad option/s);
    await assert.rejects(start('silent', 'exec sleep 60'), /timed out after 1500 ms: its line with the URL/);
    await assert.rejects(start('odd', 'echo hello; exec sleep 60'), /but 'hello'/);
});

test('a server that does not end in order is an error, and it is gone', async () => {
    const start = (name, text) => serve({ ebb: script(name, text), dir: web, timeoutMs: 1500 });
    const failing = await start('failing', "trap 'exit 7' TERM; echo http://127.0.0.1:1/; sleep 60 & wait");
    await assert.rejects(failing.stop(), /ended with code 7 after SIGTERM/);
    const deaf = await start('deaf', "trap '' TERM; echo http://127.0.0.1:1/; while :; do sleep 1; done");
    await assert.rejects(deaf.stop(), /timed out after 1500 ms: its end after SIGTERM/);
    assert.deepEqual([...leftOf(failing), ...leftOf(deaf)], []);
});
