import assert from 'node:assert/strict';
import test from 'node:test';

import { TraceReader } from '../index.js';
import { virtual } from './virtual-host.js';

async function traced(t) {
    const { host, rt } = virtual(t);
    const region = rt.region({ name: 'a region with a name that is longer than one record holds' });
    const task = region.spawn((cx) => cx.sleep(1000), { name: 'sleeper' });
    await host.settle();
    region.cancel({ kind: 'TIMEOUT', message: 'enough' });
    await host.until(region.done);
    return { rt, region, task };
}

test('a reader gives every event with its fields, by their names', async (t) => {
    const { rt, region, task } = await traced(t);
    const events = new TraceReader(rt).push(rt.takeTrace({ flush: true }));
    const requested = events.find(({ type }) => type === 'cancel_requested');
    assert.deepEqual(Object.keys(requested).sort(), [
        'cancelEpoch', 'cancelKind', 'cancelPhase', 'decisionSeq', 'hostTurnId', 'microtaskBatchId', 'name', 'other',
        'regionId', 'severity', 'site', 'status', 'taskId', 'text', 'time', 'type', 'value',
    ]);
    assert.deepEqual([requested.taskId, requested.regionId], [task.id, region.id]);
    assert.deepEqual([requested.cancelEpoch, requested.cancelPhase, requested.cancelKind, requested.severity],
        [1, 'CancelRequested', 'TIMEOUT', 'urgent']);
    const closed = events.find(({ type, regionId }) => type === 'region_closed' && regionId === region.id);
    assert.equal(closed.cancelPhase, 'Closed');
    assert.equal(closed.status, 'EBB_CANCELLED');
    assert.equal(requested.status, '');
    const opened = events.filter(({ type }) => type === 'region_opened');
    assert.deepEqual(opened.map(({ site, value }) => [site, value < 256]), [
        ['root', true], ['a region with a name that is longer than one record holds', true]]);
});

test('takeTrace gives whole blocks, with flush the rest; nothing twice', async (t) => {
    const { rt } = await traced(t);
    const whole = rt.takeTrace();
    const rest = rt.takeTrace({ flush: true });
    assert.ok(whole.length + rest.length > 64);
    assert.equal(rt.takeTrace({ flush: true }).length, 0);
    const first = whole.length > 0 ? whole : rest;
    assert.equal(new TextDecoder().decode(first.subarray(0, 8)), 'EBBTRACE');
});

test('a trace that is no trace, or is cut or damaged, is an error with its offset', async (t) => {
    const { rt } = await traced(t);
    const bytes = rt.takeTrace({ flush: true });
    const refusal = { name: 'EbbError', code: 'EBB_ERR_CORRUPT', message: /offset \d+/ };
    assert.throws(() => new TraceReader(rt).push(new Uint8Array(64)), refusal);
    assert.throws(() => new TraceReader(rt).push(bytes.subarray(0, 32)), refusal);
    assert.throws(() => new TraceReader(rt).push(bytes.subarray(0, bytes.length - 1)), refusal);
    assert.throws(() => new TraceReader(rt).push(bytes.subarray(0, 70)), refusal);
    const broken = bytes.slice();
    broken[64] ^= 0xff;
    assert.throws(() => new TraceReader(rt).push(broken), refusal);
    assert.deepEqual(new TraceReader(rt).push(new Uint8Array()), []);
});

test('bytes in the middle of a larger buffer are read as they stand', async (t) => {
    const { rt } = await traced(t);
    const bytes = rt.takeTrace({ flush: true });
    const larger = new Uint8Array(bytes.length + 13);
    larger.set(bytes, 7);
    const events = new TraceReader(rt).push(larger.subarray(7, 7 + bytes.length));
    assert.deepEqual(events, new TraceReader(rt).push(bytes));
});

test('a trace that is full says how many events it has lost, and the run goes on', async (t) => {
    const { host, rt } = virtual(t, { trace: 8192 });
    const region = rt.region();
    for (let i = 0; i < 2000; i++) region.spawn(() => {});
    await host.until(region.join());
    const { traceLost } = rt.stats();
    assert.ok(traceLost > 1000);
    const gap = rt.events().find(({ type }) => type === 'gap');
    assert.ok(gap !== undefined && gap.other > 0n);
    const before = rt.events().length;
    rt.region().spawn(() => {});
    await host.settle();
    assert.ok(rt.events().length > before, 'what comes after the gap is traced');
});

test('without a trace there are no events, and without a journal there is none', async (t) => {
    const { host, rt } = virtual(t, { trace: 0 });
    rt.region().spawn(() => {});
    await host.settle();
    assert.deepEqual(rt.events(), []);
    assert.equal(rt.takeTrace({ flush: true }).length, 0);
    assert.equal(rt.takeJournal({ flush: true }).length, 0);
});

test('long names are whole in the events that have them, wherever a character falls', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const names = [20, 21, 22, 23, 24, 25].map((n) => `${'x'.repeat(n)}☃ and more, up to the end ☃`);
    for (const name of names) region.spawn(() => new Promise(() => {}), { name });
    await host.settle();
    region.force();
    await host.until(region.done);
    const texts = rt.events().filter(({ type }) => type === 'abandoned').map(({ text }) => text);
    assert.deepEqual(texts.sort(), names.sort());
});
