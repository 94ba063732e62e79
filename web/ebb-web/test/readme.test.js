import assert from 'node:assert/strict';
import test from 'node:test';

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
