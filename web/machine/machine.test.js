// The module of machines: it runs, imports nothing, exports the C API, and is small.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { brotliCompressSync } from 'node:zlib';

const bytes = readFileSync(new URL('../../build/wasm/ebb-machine.wasm', import.meta.url));
const module = new WebAssembly.Module(bytes);

test('a ring of machines runs in WebAssembly', () => {
    const { exports } = new WebAssembly.Instance(module, {});
    assert.equal(exports.ring(1000, 5000), 1000 + 5001);
});

test('it imports nothing and exports the functions of ebb/machine.h', () => {
    assert.deepEqual(WebAssembly.Module.imports(module), []);
    const header = readFileSync(new URL('../../include/ebb/machine.h', import.meta.url), 'utf8');
    const functions = new Set([...header.matchAll(/^[a-z][\w *]*?(ebb_machines?_\w+)\(/gm)].map((match) => match[1]));
    const exported = WebAssembly.Module.exports(module).map((one) => one.name);
    assert.ok(functions.size > 20);
    for (const name of functions) assert.ok(exported.includes(name), name);
});

test('it takes at most 60 KB, compressed', () => {
    const size = brotliCompressSync(bytes).length;
    assert.ok(size <= 60 * 1024, `${size} bytes`);
});
