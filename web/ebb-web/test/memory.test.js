import assert from 'node:assert/strict';
import test from 'node:test';

import { decode } from '../src/utf8.js';
import { virtual } from './virtual-host.js';

const never = () => new Promise(() => {});

/** Spawns until the module's memory has grown; returns how many tasks that took. */
function grow(rt, region) {
    const { memoryBytes } = rt.stats();
    for (let n = 1; n <= 100000; n++) {
        region.spawn(never);
        if (rt.abi.memoryBytes > memoryBytes) return n;
    }
    throw new Error('100,000 tasks and the memory is as it was');
}

test('memory that grows in the middle of a poll: names, witnesses, messages are right after', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region({ name: 'growing' });
    const parked = region.spawn(never, { name: 'parked before' });
    await host.settle();
    parked.cancel({ kind: 'DISCONNECT', message: 'ä message with ümlauts ☃' });
    const seen = [];
    const task = region.spawn(() => {
        const before = rt.abi.memoryBytes;
        grow(rt, region);
        assert.ok(rt.abi.memoryBytes > before, 'it grew while the import was on the stack');
        seen.push(rt.info(parked.id).message, parked.witness().kind, region.info().state);
        seen.push(rt.dump().includes('parked before'), region.causes().links.length);
        parked.cancel({ kind: 'SHUTDOWN', message: 'ändert sich' });
        seen.push(rt.info(parked.id).message);
    }, { name: 'the one that grows' });
    await host.settle();
    await task.result;
    assert.deepEqual(seen, ['ä message with ümlauts ☃', 'DISCONNECT', 'Open', true, 0, 'ändert sich']);
    const spawned = rt.events().find(({ taskId, type }) => type === 'task_spawned' && taskId === task.id);
    assert.ok(spawned.text.startsWith('the one that grows') || spawned.text === '', spawned.text);
});

test('memory that grows in a hook, in a finalizer and in an abort listener does no harm', async (t) => {
    const { host, rt } = virtual(t, { trace: 0 });
    const region = rt.region();
    const sizes = [];
    const task = region.spawn(async (cx) => {
        const growing = () => {
            grow(rt, rt.region());
            sizes.push(rt.abi.memoryBytes);
        };
        cx.signal.addEventListener('abort', growing);
        cx.reserve('fence', growing);
        cx.defer(growing);
        await cx.sleep(100);
    });
    await host.settle();
    task.cancel('grow');
    await host.settle();
    assert.equal(sizes.length, 3);
    assert.ok(sizes[0] < sizes[1] && sizes[1] < sizes[2], sizes.join(' '));
    assert.equal(task.witness().phase, 'Completed');
    await assert.rejects(task.result, { reason: 'grow' });
    const { leaked } = await host.until(region.close());
    assert.deepEqual(leaked.map(({ site }) => site), ['task: fence']);
});

test('many names: each is kept once, so many of them, and then one for all that follow', async (t) => {
    const { host, rt } = virtual(t, { trace: 0 });
    const region = rt.region({ collect: true });
    for (let i = 0; i < 6000; i++) region.spawn(never, { name: `task number ${i}` });
    await host.settle();
    const named = new Set(rt.dump().match(/task number \d+/g));
    assert.ok(named.has('task number 0') && named.has('task number 4000'));
    assert.ok(named.size > 4000 && named.size < 4200, `${named.size} names`);
    assert.ok(rt.dump().includes('(one name too many)'));
    region.force();
    await host.until(region.done);
    const sizes = [];
    for (let round = 0; round < 3; round++) {
        const next = rt.region();
        for (let i = 0; i < 6000; i++) next.spawn(() => {}, { name: `another name ${round} ${i}` });
        await host.until(next.join());
        sizes.push(rt.stats().memoryBytes);
    }
    assert.equal(sizes[2], sizes[1], 'names do not add up any more');
});

test('a message is cut at 47 bytes, at the end of a character, and says so', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    for (const [character, whole] of [['x', 44], ['ä', 22], ['☃', 14], ['😀', 11]]) {
        const task = region.spawn(never);
        await host.settle();
        task.cancel(character.repeat(100));
        assert.equal(rt.info(task.id).message, `${character.repeat(whole)}...`);
    }
});

test('a message has any characters, and a name too', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    for (const text of ['', 'ends in a 0\0 and more', '\ud800 half', 'né\n"\'`', 'x'.repeat(100000)]) {
        const task = region.spawn(never, { name: text || 'empty' });
        await host.settle();
        task.cancel(text);
        const { message } = rt.info(task.id);
        const plain = new TextDecoder().decode(new TextEncoder().encode(text)).split('\0')[0];
        assert.ok(message === plain || message.endsWith('...'), JSON.stringify(message));
    }
    assert.ok(rt.dump().length > 0);
    assert.equal(rt.crash, undefined);
});

test('text is read from memory that is shared: a decoder alone would refuse it', () => {
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    const bytes = new Uint8Array(memory.buffer);
    bytes.set(new TextEncoder().encode('shared ☃'));
    assert.equal(decode(bytes.subarray(0, 10)), 'shared ☃');
    if (!globalThis.process?.versions?.node) assert.throws(() => new TextDecoder().decode(bytes), TypeError);
});
