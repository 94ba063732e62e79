import assert from 'node:assert/strict';
import test from 'node:test';

import { assertCancelEvents, CANCEL_EVENTS } from './contract.js';
import { virtual } from './virtual-host.js';

const never = () => new Promise(() => {});

/** Something of everything that can happen to a task that is asked to stop. */
async function richRun(host, rt) {
    const outer = rt.region({ name: 'outer' });
    const inner = outer.region({ name: 'inner', timeout: 500 });
    outer.spawn((cx) => cx.sleep(1000));
    outer.spawn((cx) => cx.mask(() => cx.sleep(20)));
    outer.spawn(async (cx) => {
        cx.defer(() => cx.sleep(5));
        await cx.sleep(1000);
    });
    outer.spawn(async (cx) => {
        cx.reserve('lease');
        const own = cx.region();
        own.spawn((c) => c.sleep(1000));
        await own.join();
    });
    inner.spawn(never);
    inner.spawn((cx) => cx.sleep(1000), { timeout: 30 });
    await host.pass(40);
    outer.cancel({ kind: 'DISCONNECT', message: 'gone' });
    await host.pass(2);
    outer.cancel({ kind: 'SHUTDOWN', message: 'all of it' });
    await host.pass(2);
    inner.force();
    await host.finish();
    await outer.done;
}

test('B6: every event of the cancel protocol has its eight fields, of things that exist', async (t) => {
    const { host, rt } = virtual(t);
    await richRun(host, rt);
    const events = rt.events();
    assert.ok(assertCancelEvents(events) > 20);
    const seen = new Set(events.map(({ type }) => type));
    for (const type of CANCEL_EVENTS) assert.ok(seen.has(type), `the run has a ${type}`);
});

test('B6: events that are taken piece by piece are the same as all at once', async (t) => {
    const [one, two] = [virtual(t), virtual(t)];
    await richRun(one.host, one.rt);
    const pieces = [];
    const { host, rt } = two;
    const step = host.step.bind(host);
    host.step = () => {
        pieces.push(...rt.events());
        return step();
    };
    await richRun(host, rt);
    pieces.push(...rt.events());
    const plain = ({ rt: { id } }, events) => events.map((event) => ({
        ...event, decisionSeq: 0n, taskId: strip(event.taskId, id), regionId: strip(event.regionId, id),
        other: strip(event.other, id),
    }));
    assert.deepEqual(plain(two, pieces), plain(one, one.rt.events()));
});

/** An id without the number of its runtime. */
function strip(id, runtime) {
    return id >> 56n === BigInt(runtime) ? id & (1n << 56n) - 1n : id;
}

test('B6: a request that is made in a later turn of the host has the number of that turn', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn(never);
    await host.settle();
    const first = rt.events().at(-1).hostTurnId;
    await host.pass(100);
    task.cancel('a click');
    const request = rt.events().find(({ type }) => type === 'cancel_requested');
    assert.ok(request.hostTurnId > first, `turn ${request.hostTurnId} after turn ${first}`);
});

test('R4: a cascade tells parents before children, and each region before its tasks', async (t) => {
    const { host, rt } = virtual(t);
    const depth = new Map();
    const where = new Map();
    const grow = (region, level) => {
        depth.set(region.id, level);
        for (let i = 0; i < 2; i++) where.set(region.spawn(never).id, region.id);
        if (level < 4) for (let i = 0; i < 2; i++) grow(region.region(), level + 1);
    };
    const top = rt.region();
    grow(top, 0);
    await host.settle();
    rt.events();
    top.cancel('from the top');
    const told = rt.events().filter(({ type }) => type === 'region_cancelled' || type === 'cancel_requested');
    assert.equal(told.length, 31 + 62);
    const levels = told.map(({ regionId }) => depth.get(regionId));
    assert.deepEqual(levels, [...levels].sort((a, b) => a - b), 'by depth');
    for (const [task, region] of where) {
        const first = told.findIndex((e) => e.type === 'region_cancelled' && e.regionId === region);
        assert.ok(first < told.findIndex((e) => e.taskId === task));
    }
});

test('R4: the same history gives the same order', async (t) => {
    const orders = [];
    for (let run = 0; run < 2; run++) {
        const { host, rt } = virtual(t);
        const top = rt.region();
        for (let i = 0; i < 5; i++) {
            const child = top.region();
            for (let k = 0; k < 3; k++) child.spawn(never);
        }
        await host.settle();
        rt.events();
        top.cancel('again');
        const plain = (id) => strip(id, rt.id);
        orders.push(rt.events().map((e) => [e.type, plain(e.taskId), plain(e.regionId)]));
    }
    assert.deepEqual(orders[0], orders[1]);
});

test('R4: children are told PARENT with the severity of the root cause, which ends the chain', async (t) => {
    const { host, rt } = virtual(t);
    const top = rt.region({ name: 'top' });
    const leaf = top.region({ name: 'middle' }).region({ name: 'leaf' });
    const task = leaf.spawn(never);
    await host.settle();
    top.cancel({ kind: 'TIMEOUT', message: 'too late' });
    assert.equal(task.witness().kind, 'PARENT');
    assert.equal(task.witness().severity, 'urgent');
    assert.equal(task.cx.reason().message, 'PARENT: too late');
    const { links, truncated } = leaf.causes();
    assert.equal(truncated, false);
    assert.deepEqual(links.map(({ kind, severity }) => `${kind} ${severity}`),
        ['PARENT urgent', 'PARENT urgent', 'TIMEOUT urgent']);
    assert.equal(links.at(-1).region, top.id);
    assert.equal(links.at(-1).message, 'too late');
});

test('R4: a chain that is too long is cut, says so, and keeps its root cause', async (t) => {
    const { host, rt } = virtual(t);
    const top = rt.region();
    let leaf = top;
    for (let i = 0; i < 40; i++) leaf = leaf.region();
    leaf.spawn(never);
    await host.settle();
    top.cancel({ message: 'the root of it' });
    const { links, truncated } = leaf.causes();
    assert.equal(truncated, true);
    assert.equal(links.length, 24);
    assert.equal(links.at(-1).region, top.id);
    assert.equal(links.at(-1).kind, 'USER');
    assert.equal(links.at(-1).message, 'the root of it');
    assert.ok(rt.events().some(({ type }) => type === 'chain_truncated'));
});
