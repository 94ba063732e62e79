import assert from 'node:assert/strict';
import test from 'node:test';

import { Obligation } from '../index.js';
import { CLEAN } from './contract.js';
import { virtual } from './virtual-host.js';

const KINDS = ['permit', 'ack', 'lease', 'fence', 'io', 'transaction'];

test('an obligation is committed or aborted, once: the second resolution is an error by name', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const task = rt.region().spawn((cx) => {
        const kept = cx.reserve('permit', () => log.push('never'));
        assert.ok(kept instanceof Obligation);
        assert.equal(kept.kind, 'permit');
        assert.equal(typeof kept.id, 'bigint');
        kept.commit();
        const dropped = cx.reserve('lease', () => log.push('hook'));
        dropped.abort();
        assert.deepEqual(log, ['hook'], 'called at once');
        for (const obligation of [kept, dropped]) {
            for (const verb of ['commit', 'abort']) {
                assert.throws(() => obligation[verb](), { name: 'EbbError', code: 'EBB_ERR_RESOLVED' });
            }
        }
    });
    await host.settle();
    await task.result;
    assert.deepEqual(log, ['hook']);
    assert.equal(rt.stats().leaks, 0);
});

test('one that nobody resolved is a leak: aborted, counted, named in trace and report', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const log = [];
    const task = region.spawn((cx) => {
        cx.reserve('transaction', () => log.push(`hook, ended: ${task.ended}`));
        return 'forgot it';
    }, { name: 'careless' });
    await host.settle();
    assert.equal(await task.result, 'forgot it');
    assert.deepEqual(log, ['hook, ended: false']);
    const { leaked, status } = await host.until(region.close());
    assert.equal(status, 'ok');
    assert.deepEqual(leaked.map(({ site }) => site), ['careless: transaction']);
    assert.equal(rt.stats().leaks, 1);
    const event = rt.events().find(({ type }) => type === 'obligation_leaked');
    assert.equal(event.taskId, task.id);
    assert.equal(event.text, 'careless: transaction');
});

test('every kind there is can be reserved, and another is a TypeError that lists them', async (t) => {
    const { host, rt } = virtual(t);
    const task = rt.region().spawn((cx) => {
        for (const kind of KINDS) cx.reserve(kind).commit();
        for (const kind of ['PERMIT', 'none', '', undefined, 1]) {
            assert.throws(() => cx.reserve(kind), { name: 'TypeError', message: /permit.*transaction/ });
        }
        assert.throws(() => cx.reserve('ack', 'no function'), TypeError);
        assert.equal(rt.stats().obligations, 0);
    });
    await host.settle();
    await task.result;
    const kinds = rt.events().filter(({ type }) => type === 'obligation_reserved').map(({ value }) => value);
    assert.deepEqual(kinds, [1, 2, 3, 4, 5, 6]);
});

test('a finalizer may still resolve what the task has reserved', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn((cx) => {
        const obligation = cx.reserve('io', () => assert.fail('it was committed'));
        cx.defer(() => obligation.commit());
    });
    await host.settle();
    await task.result;
    assert.deepEqual((await host.until(region.close())).leaked, []);
});

test('others may resolve it: what was handed over belongs to whoever has it', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    let obligation;
    const owner = region.spawn(async (cx) => {
        obligation = cx.reserve('ack');
        await cx.sleep(20);
    });
    await host.settle();
    region.spawn(() => obligation.commit());
    await host.finish();
    await owner.result;
    assert.deepEqual((await host.until(region.close())).leaked, []);
});

test('resolving it after the task has ended is an error by name: it leaked', async (t) => {
    const { host, rt } = virtual(t);
    let obligation;
    rt.region().spawn((cx) => {
        obligation = cx.reserve('fence');
    });
    await host.settle();
    assert.throws(() => obligation.commit(), { code: 'EBB_ERR_RESOLVED' });
    assert.throws(() => obligation.abort(), { code: 'EBB_ERR_RESOLVED' });
});

test('a cancelled task may not reserve any more, and resolves what it has while it cleans up', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const log = [];
    region.spawn(async (cx) => {
        const obligation = cx.reserve('lease', () => log.push('given back'));
        try {
            await cx.sleep(1000);
        } finally {
            assert.throws(() => cx.reserve('permit'), { name: 'AbortError', kind: 'USER' });
            obligation.abort();
        }
    });
    await host.settle();
    region.cancel('stop');
    const report = await host.until(region.done);
    assert.deepEqual(report, { status: 'cancelled', ...CLEAN });
    assert.deepEqual(log, ['given back']);
});

test('a hook may do what any code may: spawn, wake, cancel; it runs once', async (t) => {
    const { host, rt } = virtual(t);
    const log = [];
    const other = rt.region();
    rt.region().spawn((cx) => {
        cx.reserve('permit', () => {
            log.push('hook');
            other.spawn(() => log.push('spawned by the hook'));
            other.region().cancel();
        });
    });
    await host.settle();
    assert.deepEqual(log, ['hook', 'spawned by the hook']);
});

test('hooks that abort the next obligation, a list of thousands, run one after the other', async (t) => {
    const { host, rt } = virtual(t, { trace: 0 });
    let aborted = 0;
    const task = rt.region().spawn((cx) => {
        let next;
        for (let i = 0; i < 5000; i++) {
            const after = next;
            next = cx.reserve('lease', () => {
                aborted++;
                after?.abort();
            });
        }
        next.abort();
        return aborted;
    });
    await host.settle();
    assert.equal(await task.result, 5000);
    assert.equal(rt.crash, undefined);
});

test('resolved says whether it was: committed, aborted, or aborted because it leaked', async (t) => {
    const { host, rt } = virtual(t);
    const obligations = [];
    const task = rt.region().spawn((cx) => {
        for (let i = 0; i < 3; i++) obligations.push(cx.reserve('ack'));
        obligations[0].commit();
        obligations[1].abort();
        return obligations.map(({ resolved }) => resolved);
    });
    await host.settle();
    assert.deepEqual(await task.result, [true, true, false]);
    assert.equal(obligations[2].resolved, true);
});
