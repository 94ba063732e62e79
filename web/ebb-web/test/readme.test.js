import assert from 'node:assert/strict';
import test from 'node:test';

import { virtual } from './virtual-host.js';
import { packageFile } from './wasm-bytes.js';

/** The blocks of code in the README, by their language. */
async function blocks(language) {
    const text = new TextDecoder().decode(await packageFile('README.md'));
    return [...text.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\``, 'gm'))].map(([, code]) => code);
}

/** Runs a program as a module of its own, with a console that keeps what it is told. */
async function run(program) {
    const lines = [];
    const name = `readme${Math.random()}`;
    globalThis[name] = { log: (...args) => lines.push(args.join(' ')) };
    const index = new URL('../index.js', import.meta.url).href;
    const imported = program.replace("'ebb-web'", JSON.stringify(index));
    const source = `const console = globalThis[${JSON.stringify(name)}];\n${imported}`;
    const url = globalThis.process?.versions?.node ? `data:text/javascript,${encodeURIComponent(source)}`
        : URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
    await import(url);
    delete globalThis[name];
    return lines;
}

test('the start in the README runs as it stands and prints what it says', async () => {
    const [[program], [printed]] = [await blocks('js'), await blocks('text')];
    assert.ok(program.split('\n').length <= 24, 'it is short');
    assert.deepEqual(await run(program), printed.trim().split('\n'));
});

test('the recipes in the README do what they say', async (t) => {
    const [, recipes] = await blocks('js');
    const url = globalThis.process?.versions?.node ? `data:text/javascript,${encodeURIComponent(recipes)}`
        : URL.createObjectURL(new Blob([recipes], { type: 'text/javascript' }));
    const { any, within, borrow } = await import(url);
    const { host, rt } = virtual(t);
    const region = rt.region();
    const log = [];
    const fails = () => {
        throw new Error('down');
    };
    const sleeps = (ms, value) => async (cx) => {
        await cx.sleep(ms);
        return value;
    };
    assert.equal(await host.until(any(region, [fails, sleeps(20, 'second'), sleeps(90, 'third')])), 'second');
    assert.ok(host.time < 50);
    await assert.rejects(host.until(within(region, 10, sleeps(1000))), { kind: 'TIMEOUT' });
    assert.equal(await host.until(within(region, 10, sleeps(5, 'in time'))), 'in time');
    const task = region.spawn(async (cx) => {
        borrow(cx, () => log.push('never')).commit();
        borrow(cx, () => log.push('given back'));
        await cx.sleep(1000);
    });
    await host.settle();
    task.cancel();
    const { leaked } = await host.until(region.join());
    assert.deepEqual([log, leaked], [['given back'], []]);
});

test('every method that the README names is there', async () => {
    const { Cx, Region, Runtime, Task } = await import('../index.js');
    const text = new TextDecoder().decode(await packageFile('README.md'));
    const classes = { cx: Cx, region: Region, rt: Runtime, task: Task, own: Region };
    const named = [...text.matchAll(/\b(cx|region|rt|task|own)\.(\w+)/g)];
    assert.ok(named.length > 50);
    for (const [whole, thing, member] of named) {
        const known = member in classes[thing].prototype || ['done', 'root', 'crash'].includes(member);
        assert.ok(known, whole);
    }
});
