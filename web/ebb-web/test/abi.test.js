import assert from 'node:assert/strict';
import test from 'node:test';

import { Runtime } from '../index.js';
import { ABI_VERSION, EXPORTS, IMPORTS } from '../src/abi.js';
import { virtual, VirtualHost } from './virtual-host.js';
import { moduleOf, packageFile, read } from './wasm-bytes.js';

/** Exports that are all there and do nothing, with some changed; undefined: left out. */
function exportsWith(changes = {}) {
    const result = (name) => (name === 'abi_version' ? ABI_VERSION : 0);
    const all = Object.entries(EXPORTS).map(([name, type]) => [name, [type, result(name)]]);
    const changed = { ...Object.fromEntries(all), ...changes };
    return Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== undefined));
}

function load(description) {
    return new Runtime(new VirtualHost().capabilities, { module: moduleOf(description) });
}

/** What a module that does not fit is refused with. */
function refusal(message) {
    return { name: 'EbbError', code: 'EBB_ERR_ABI', message };
}

test('the table of the ABI is what ebb.wasm has: each function with its types, no more', async () => {
    const module = read(await packageFile('ebb.wasm'));
    assert.deepEqual(module.exports, EXPORTS);
    const imports = Object.fromEntries(Object.entries(IMPORTS).map(([name, type]) => [`ebb.${name}`, type]));
    assert.deepEqual(module.imports, imports);
    assert.deepEqual(module.others, ['memory']);
});

test('the module in the package is the file ebb.wasm', async () => {
    const { builtin } = await import('../src/module.js');
    const bytes = await packageFile('ebb.wasm');
    const names = (module) => WebAssembly.Module.exports(module).map(({ name }) => name);
    assert.deepEqual(names(builtin()), names(new WebAssembly.Module(bytes)));
    assert.equal(new WebAssembly.Instance(builtin(), { ebb: fakes() }).exports.abi_version(), ABI_VERSION);
    assert.equal(builtin(), builtin(), 'compiled once');
});

function fakes() {
    return Object.fromEntries(Object.keys(IMPORTS).map((name) => [name, () => 0]));
}

test('a module that fits is taken', () => {
    assert.ok(load({ exports: exportsWith() }) instanceof Runtime);
});

test('another version of the ABI is refused, with both numbers', () => {
    const exports = exportsWith({ abi_version: ['i', ABI_VERSION + 1] });
    assert.throws(() => load({ exports }), refusal(new RegExp(`ABI ${ABI_VERSION + 1}.*ABI ${ABI_VERSION}`)));
});

test('a module of something else is refused: it has no abi_version', () => {
    assert.throws(() => load({ exports: { add: ['iii', 0] } }), refusal(/abi_version/));
});

for (const name of ['spawn', 'witness', 'timer_disarm']) {
    test(`a module without ${name} is refused by that name`, () => {
        assert.throws(() => load({ exports: exportsWith({ [name]: undefined }) }),
            refusal(new RegExp(`\\b${name}\\b`)));
    });
}

test('a function with another number of parameters is refused, with both numbers', () => {
    const exports = exportsWith({ spawn: ['IIIiiiI', 0] });
    assert.throws(() => load({ exports }), refusal(/spawn takes 6.*7/));
});

test('a module without a memory is refused', () => {
    assert.throws(() => load({ exports: exportsWith(), memory: false }), refusal(/memory/));
});

test('a module that asks for something we do not give is refused by its name, and nothing of it runs', () => {
    const foreign = [['env', 'system', 'iv']];
    assert.throws(() => load({ imports: foreign, exports: exportsWith() }), refusal(/env\.system/));
    const unknown = [['ebb', 'open_file', 'iv']];
    assert.throws(() => load({ imports: unknown, exports: exportsWith() }), refusal(/ebb\.open_file/));
});

test('a module that asks for less than we give is taken', () => {
    assert.ok(load({ imports: [['ebb', 'poll', 'Iiii']], exports: exportsWith() }) instanceof Runtime);
});

test('every name that events, kinds, phases and states have is known', (t) => {
    const { rt } = virtual(t);
    assert.equal(rt.abi.name(2, 4), 'TIMEOUT');
    assert.equal(rt.abi.name(4, 3), 'CancelRequested');
    assert.equal(rt.abi.name(3, 255), undefined, 'no event of that number');
    assert.equal(rt.abi.name(99, 1), undefined, 'no such table');
});
