/* The command that runs the tests in the browser: what it prints, and its exit code. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { ebb, tools, web } from './served.js';

const sample = (name) => `tools/test/samples/${name}.sample.js`;

async function run(args, dir = web) {
    const command = [`${tools}browser-tests.js`, '--ebb', ebb, '--dir', dir, ...args];
    const child = spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'pipe'] });
    const exited = once(child, 'close');
    let out = '';
    child.stdout.on('data', (text) => (out += text));
    child.stderr.on('data', (text) => (out += text));
    const [code] = await exited;
    return { code, out, lines: out.trimEnd().split('\n') };
}

test('tests that pass are 0, with a line each', async () => {
    const { code, lines } = await run([sample('passing'), sample('only-node')]);
    assert.deepEqual(lines, [
        `# ${sample('passing')}`, 'ok arithmetic > adds', '# one and one',
        'ok arithmetic > is skipped # SKIP today',
        `# ${sample('only-node')}`, `ok ${sample('only-node')} # SKIP only: node`,
        '1 passed, 0 failed, 2 skipped',
    ]);
    assert.equal(code, 0);
});

test('a test that fails is 1, with its error, its place and the console', async () => {
    const { code, out, lines } = await run([sample('failing')]);
    assert.match(out, /^ok is right\nnot ok is wrong\n {4}AssertionError: .*2 !== 3/ms);
    assert.match(out, /tools\/test\/samples\/failing\.sample\.js:7:/);
    assert.match(out, /the page's console said:\n +log: on the way/);
    assert.equal(lines.at(-1), '1 passed, 1 failed');
    assert.equal(code, 1);
});

test('no test at all is 1', async () => {
    const { code, lines } = await run([sample('only-node')]);
    assert.equal(lines.at(-1), '0 passed, 0 failed, 1 skipped');
    assert.equal(code, 1);
});

test('a page that asks elsewhere is 1', async () => {
    const { code, out, lines } = await run([sample('foreign')]);
    assert.match(out, /not ok .*foreign\.sample\.js asks its own host only\n +http:\/\/elsewhere\.example\//);
    assert.equal(lines.at(-1), '1 passed, 1 failed');
    assert.equal(code, 1);
});

test('an uncaught error is 1', async () => {
    const { code, out } = await run([sample('uncaught')]);
    assert.match(out, /not ok .*uncaught\.sample\.js has no uncaught error\n +Error: left behind/);
    assert.equal(code, 1);
});

test('a page that hangs or waits for ever is 1, names the test, and the next file runs', async () => {
    const files = ['hangs', 'waits', 'passing'].map(sample);
    const { code, out, lines } = await run(['--stall-ms', '3000', ...files]);
    assert.match(out, /^ok ends\nnot ok .*hangs\.sample\.js\n +timed out: .* 3000 ms; running: never ends/m);
    assert.match(out, /not ok .*waits\.sample\.js\n +timed out: .* 3000 ms; running: waits for nothing/);
    assert.equal(lines.at(-1), '2 passed, 2 failed, 1 skipped');
    assert.equal(code, 1);
});

test('without files it takes those of the package', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'ebb-tools-'));
    t.after(() => rmSync(dir, { recursive: true }));
    mkdirSync(join(dir, 'tools'));
    for (const name of readdirSync(tools).filter((each) => /\.(js|html)$/.test(each)))
        cpSync(join(tools, name), join(dir, 'tools', name));
    for (const name of ['passing', 'failing'])
        cpSync(join(web, sample(name)), join(dir, `ebb-web/test/${name}.test.js`));
    cpSync(join(web, sample('hangs')), join(dir, 'ebb-web/test/not-a-test.js'));
    const { lines } = await run([], dir);
    assert.deepEqual(lines.filter((line) => line.startsWith('# e')),
        ['# ebb-web/test/failing.test.js', '# ebb-web/test/passing.test.js']);
    assert.equal(lines.at(-1), '2 passed, 1 failed, 1 skipped');
});

test('wrong arguments are 1, with a word on what is wrong', async () => {
    const { code, out } = await run(['none.js']);
    assert.match(out, /none\.js is not in/);
    assert.equal(code, 1);
});
