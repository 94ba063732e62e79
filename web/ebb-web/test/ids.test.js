import assert from 'node:assert/strict';
import test from 'node:test';

import { Runtime } from '../index.js';
import { virtual, VirtualHost } from './virtual-host.js';

const never = () => new Promise(() => {});
const FOREVER = 2n ** 64n - 1n;

/** Everything that takes an id. */
const OF_TASKS = ['wake', 'info', 'witness'];
const OF_REGIONS = ['regionInfo', 'causes'];
const ONE_ID = ['task_info', 'witness', 'region_info', 'cause_chain', 'checkpoint', 'mask', 'unmask',
    'signal', 'timer_disarm'];

test('an id is a BigInt that is never negative, in every runtime of a page', () => {
    for (let i = 0; i < 260; i++) {
        const rt = new Runtime(new VirtualHost().capabilities); /* let go at once: a page has room for 120 */
        const { id } = rt.region().spawn(never);
        assert.equal(typeof id, 'bigint');
        assert.ok(id > 0n && id <= FOREVER && rt.root.id > 0n, `${id}`);
        assert.equal(rt.info(id).region >> 56n, BigInt(rt.id));
        assert.ok(rt.id >= 1 && rt.id <= 255);
    }
});

for (const bad of [7, 7.5, '7', NaN, undefined, null, {}, -1n, 2n ** 64n, Symbol('id')]) {
    test(`the id ${String(bad)} (${typeof bad}) is a TypeError that says what is expected`, (t) => {
        const { rt } = virtual(t);
        for (const name of [...OF_TASKS, ...OF_REGIONS]) {
            assert.throws(() => rt[name](bad), { name: 'TypeError', message: /BigInt/ }, name);
        }
        assert.equal(rt.crash, undefined);
    });
}

test('an id as a Number would be another id: it is refused even where it is exact', (t) => {
    const { rt } = virtual(t);
    const { id } = rt.region().spawn(never);
    assert.notEqual(BigInt(Number(id) + 1), id + 1n);
    assert.throws(() => rt.info(Number(id)), TypeError);
});

test('0 is no id: an error by name, and the memory at address 0 is not touched', (t) => {
    const { rt } = virtual(t);
    for (const name of [...OF_TASKS, ...OF_REGIONS]) {
        assert.throws(() => rt[name](0n), { name: 'EbbError', code: 'EBB_ERR_INVALID' }, name);
    }
});

test('an id of another runtime is refused by name', (t) => {
    const [{ rt: one }, { rt: two }] = [virtual(t), virtual(t)];
    const task = two.region().spawn(never);
    for (const name of OF_TASKS) {
        assert.throws(() => one[name](task.id), { name: 'EbbError', code: 'EBB_ERR_FOREIGN' }, name);
    }
    for (const name of OF_REGIONS) assert.throws(() => one[name](two.root.id), { code: 'EBB_ERR_FOREIGN' });
    assert.throws(() => one.info(FOREVER), { code: 'EBB_ERR_FOREIGN' });
});

test('an id that is spent is stale, by name', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn(() => {});
    await host.until(region.join());
    assert.throws(() => rt.info(task.id), { code: 'EBB_ERR_STALE' });
    assert.throws(() => rt.witness(task.id), { code: 'EBB_ERR_STALE' });
    assert.throws(() => rt.regionInfo(region.id), { code: 'EBB_ERR_STALE' });
    assert.throws(() => rt.causes(region.id), { code: 'EBB_ERR_STALE' });
    assert.equal(region.info().state, 'Closed', 'a region itself remembers');
    assert.throws(() => region.spawn(never), { code: 'EBB_ERR_CLOSED', message: /region/ });
});

test('an id of a region is not one of a task, nor the other way round', (t) => {
    const { rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn(never);
    assert.throws(() => rt.info(region.id), { name: 'EbbError' });
    assert.throws(() => rt.regionInfo(task.id + (1n << 40n)), { name: 'EbbError' });
});

test('ids that look alive but never were are refused, all of them', (t) => {
    const { rt } = virtual(t);
    const { id } = rt.region().spawn(never);
    for (let bit = 0n; bit < 56n; bit++) {
        const other = id ^ 1n << bit;
        assert.throws(() => rt.info(other), { name: 'EbbError' }, `${other}`);
        assert.throws(() => rt.witness(other), { name: 'EbbError' }, `${other}`);
    }
    assert.equal(rt.crash, undefined);
});

test('the module takes any 64 bits for an id and answers with a status: it never traps', (t) => {
    const { rt } = virtual(t);
    const { call } = rt.abi;
    const ids = [0n, 1n, -1n, FOREVER, rt.root.id, rt.root.id + 1n, 1n << 63n, BigInt(rt.id) << 56n];
    for (let i = 0n; i < 64n; i++) ids.push(1n << i, BigInt(rt.id) << 56n | 1n << i);
    for (const id of ids) {
        for (const name of ONE_ID) call[name](id);
        call.wake(0n, id);
        call.wake(id, 0n);
        call.commit(0n, id);
        call.abort(0n, id);
        call.task_cancel(id, id, 1);
        call.task_force(id);
        call.region_work(id, 0, 0);
        call.region_work(id, 1, 0xffffffff);
        call.id_status(call.spawn(id, id, 0n, 0, 0, 0, 0));
        call.id_status(call.reserve(id, 1, 0, 0));
        call.id_status(call.timer_arm(id, 1n));
    }
    assert.equal(rt.crash, undefined);
    assert.equal(rt.stats().illegal, 0);
});

test('what a constructor refused is an error at once, and so is everything done with such an id', (t) => {
    const { rt } = virtual(t);
    const region = rt.region();
    region.close();
    assert.throws(() => region.spawn(never), { code: 'EBB_ERR_CLOSED', message: /spawn of never/ });
    const { call } = rt.abi;
    const carried = call.spawn(0n, region.id, 0n, 0, 0, 0, 0);
    assert.ok(call.id_status(carried) < 0);
    assert.equal(call.task_info(carried), call.id_status(carried));
    assert.equal(call.wake(0n, carried), call.id_status(carried));
    assert.throws(() => rt.info(BigInt.asUintN(64, carried)), { code: 'EBB_ERR_CLOSED' });
});

test('a bad id that is woken inside a poll is refused there, and no other wake is lost', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const target = new EventTarget();
    const waits = region.spawn((cx) => cx.once(target, 'go'));
    await host.settle();
    const errors = [];
    region.spawn(() => {
        for (const id of [BigInt(rt.id) << 56n, 0n, 5n, 7]) {
            try {
                rt.wake(id);
            } catch (error) {
                errors.push(error.name);
            }
        }
        target.dispatchEvent(new Event('go'));
    });
    await host.settle();
    assert.equal(waits.ended, true);
    assert.equal(errors.length, 4);
});
