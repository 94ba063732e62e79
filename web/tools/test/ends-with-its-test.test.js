/* Nothing that a test started outlives it, whichever way the test ends. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';

import { leftInTheEnd, processesOf } from './processes.js';
import { ebb, tools, web } from './served.js';

const LIMIT = { timeout: 120000 };
const START = `
    import { Chromium } from '${tools}chromium.js';
    import { serve } from '${tools}serve.js';
    const browser = await Chromium.start();
    const server = await serve({ ebb: '${ebb}', dir: '${web}' });
    const { pid, dir } = browser;
    console.log(JSON.stringify({ browser: { pid, dir }, server: { pid: server.pid } }));
`;

/** Runs a script that starts both, until it has said so; in a group of its own, as from a terminal. */
async function started(rest) {
    const { NODE_TEST_CONTEXT, ...env } = process.env;
    const child = spawn(process.execPath, ['--input-type=module', '-e', START + rest],
        { detached: true, stdio: ['ignore', 'pipe', 'ignore'], env });
    const exited = once(child, 'exit');
    const [line] = await once(createInterface(child.stdout), 'line');
    return { child, exited, ...JSON.parse(line) };
}

async function assertGone({ browser, server }) {
    assert.deepEqual(await leftInTheEnd(browser), []);
    assert.deepEqual(await leftInTheEnd(server), []);
}

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGKILL'])
    test(`browser, its directory and server are gone after ${signal} to the group`, LIMIT, async () => {
        const run = await started('setTimeout(() => {}, 60000);');
        assert.ok(processesOf(run.browser).length > 1);
        assert.ok(processesOf(run.server).length > 0);
        process.kill(-run.child.pid, signal);
        assert.deepEqual(await run.exited, [null, signal]);
        await assertGone(run);
    });

test('they are gone after a throw', LIMIT, async () => {
    const run = await started("throw new Error('no close()');");
    assert.deepEqual(await run.exited, [1, null]);
    await assertGone(run);
});

test('they keep nobody waiting: a script that forgets close() ends by itself', LIMIT, async () => {
    const run = await started('');
    assert.deepEqual(await run.exited, [0, null]);
    await assertGone(run);
});

test('a failed test that forgets close() fails, and they are gone', LIMIT, async () => {
    const run = await started("import test from 'node:test'; test('bad', () => { throw new Error(); });");
    assert.deepEqual(await run.exited, [1, null]);
    await assertGone(run);
});
