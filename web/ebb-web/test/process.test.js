// only: node
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import test from 'node:test';

const INDEX = new URL('../index.js', import.meta.url).href;
const START = `import { Runtime, hostOf } from ${JSON.stringify(INDEX)};
    const rt = new Runtime(hostOf(globalThis));`;

/** Runs a program in a process of its own; resolves with how it ended. */
function run(t, program) {
    const child = spawn(process.execPath, ['--input-type=module', '-e', START + program]);
    t.after(() => child.kill('SIGKILL'));
    let [out, err] = ['', ''];
    child.stdout.on('data', (data) => (out += data));
    child.stderr.on('data', (data) => (err += data));
    return new Promise((resolve) => {
        child.on('exit', (code, signal) => resolve({ code, signal, out, err }));
    });
}

/** Fails instead of hanging with the process. */
async function ends(t, program) {
    const late = new Promise((resolve) => {
        const timer = setTimeout(() => resolve({ code: 'it did not end' }), 4000);
        t.after(() => clearTimeout(timer));
    });
    return Promise.race([run(t, program), late]);
}

test('a process with a runtime that nobody closed ends', async (t) => {
    assert.equal((await ends(t, '')).code, 0);
});

test('a process ends when its work has, though the runtime is open', async (t) => {
    const { code, out } = await ends(t, `
        const task = rt.region().spawn(async (cx) => {
            await cx.sleep(20);
            await cx.yield();
            return 'slept';
        });
        console.log(await task.result);`);
    assert.deepEqual([code, out], [0, 'slept\n']);
});

test('a process waits for a task that sleeps, with nobody waiting for it', async (t) => {
    const { code, out } = await ends(t, `
        rt.region().spawn(async (cx) => {
            await cx.sleep(50);
            console.log('slept');
        });`);
    assert.deepEqual([code, out], [0, 'slept\n']);
});

test('a process waits for a storm to end, in microtasks and in messages', async (t) => {
    const { code, out } = await ends(t, `
        rt.region().spawn(async (cx) => {
            for (let i = 0; i < 50000; i++) await cx.yield();
            console.log('over');
        });`);
    assert.deepEqual([code, out], [0, 'over\n']);
});

test('a process whose task only waits for something that nobody will do ends', async (t) => {
    assert.equal((await ends(t, 'rt.region().spawn((cx) => cx.wait(new Promise(() => {})));')).code, 0);
});

test('a process waits for a forced task to be abandoned, and for the region to close', async (t) => {
    const { code, out } = await ends(t, `
        const region = rt.region();
        region.spawn(() => new Promise(() => {}), { name: 'stubborn' });
        setTimeout(() => {
            region.force();
            region.done.then((report) => console.log(report.abandoned[0].site));
        }, 5);`);
    assert.deepEqual([code, out], [0, 'stubborn\n']);
});

test('a failure that nobody hears ends the process, as any unhandled rejection does', async (t) => {
    const { code, err } = await ends(t, 'rt.region().spawn(() => { throw new Error("nobody hears"); });');
    assert.equal(code, 1);
    assert.match(err, /nobody hears/);
});

test('close ends everything, and the process with it', async (t) => {
    const { code, out } = await ends(t, `
        rt.region().spawn((cx) => cx.sleep(100000));
        setTimeout(async () => { rt.root.cancel('bye'); await rt.close(); console.log('closed'); }, 5);`);
    assert.deepEqual([code, out], [0, 'closed\n']);
});
