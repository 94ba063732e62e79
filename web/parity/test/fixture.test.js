import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';

import { Abi, IMPORTS } from '../../ebb-web/src/abi.js';
import { inspectTrace, runFixture, unfit } from '../fixture.js';
import { fixtureGate } from '../gates.js';
import { Names, eventText } from '../words.js';
import { EBB, FIXTURES, IDS, WEB, fixtureOf, moduleOf } from './built.js';

const lab = moduleOf('ebb-lab.wasm');
const mutant = moduleOf('ebb-mutant.wasm');

function ebb(...args) {
    return execFileSync(EBB, args, { encoding: 'utf8' });
}

/** The traces of all fixtures with a seed, as the command writes them. */
function nativeTraces(seed) {
    const dir = mkdtempSync(join(tmpdir(), 'ebb-parity-test-'));
    try {
        ebb('fixture', 'run', '--dir', FIXTURES, '--seed', seed, '--trace-dir', dir);
        return new Map(IDS.map((id) => [id, readFileSync(join(dir, `${id}.trace`))]));
    } finally {
        rmSync(dir, { recursive: true });
    }
}

test('there are the eighteen fixtures of the contract', () => {
    assert.equal(IDS.length, 18);
});

for (const id of IDS) {
    test(`${id} does what it expects`, () => {
        const fixture = fixtureOf(id);
        const record = runFixture(lab, fixture);
        assert.equal(record.error, undefined);
        assert.deepEqual(fixtureGate(fixture, record, 'node', true), []);
        assert.deepEqual(record.missing, []);
        assert.deepEqual(record.witness, []);
        assert.equal(record.lines.length, record.actual.events.length);
    });
}

for (const seed of ['0', '1', '77', '18446744073709551615']) {
    test(`seed ${seed} gives what the command shows, and the same trace byte for byte`, () => {
        const traces = nativeTraces(seed);
        for (const id of IDS) {
            const { actual, trace } = runFixture(lab, fixtureOf(id), { seed });
            const shown = ebb('fixture', 'show', id, '--dir', FIXTURES, '--seed', seed);
            assert.deepEqual(actual, JSON.parse(shown), id);
            assert.ok(traces.get(id).equals(Buffer.from(trace, 'base64')), `${id}: the traces differ`);
        }
    });
}

test('seeds give orders, and never another end', () => {
    const several = IDS.filter((id) => {
        const run = (seed) => runFixture(lab, fixtureOf(id), { seed });
        const [own, ...others] = ['0', '0', '1', '2', '3', '77', '18446744073709551615'].map(run);
        assert.deepEqual(others[0], own, id);
        for (const { actual } of others) {
            for (const part of ['phases', 'outcomes', 'closure', 'results']) {
                assert.deepEqual(actual[part], own.actual[part], `${id}: ${part}`);
            }
        }
        return new Set([own, ...others].map(({ actual }) => actual.events.join())).size > 1;
    });
    assert.deepEqual(several, [
        'cancel.region.cascade_parent_before_child',
        'cancel.scheduler.cancel_lane_routing_on_pending_wake',
        'parity.late_wake_race',
        'parity.nested_cascade',
        'parity.obligation_and_finalizer',
    ]);
});

test('a snapshot that is not known is not run', () => {
    const { error, actual } = runFixture(lab, { ...fixtureOf(IDS[0]), snapshot: 'full' });
    assert.equal(error.text, "the snapshot is 'full'; expected 'empty-root'");
    assert.deepEqual(actual.events, []);
});

test('the ids of what took part have their names', () => {
    const { ids } = runFixture(lab, fixtureOf('cancel.task.masked_defers_ack'));
    assert.deepEqual(ids, ['region root 0.1.1', 'region job 0.2.1', 'task worker 0.1.1']);
});

test('a line that is not understood ends the run with what was expected there', () => {
    const fixture = fixtureOf('cancel.task.masked_defers_ack');
    fixture.script[2] = 'pmup';
    const { error, actual } = runFixture(lab, fixture);
    assert.equal(error.line, 3);
    assert.match(error.text, /^word 1: found 'pmup', expected a verb/);
    assert.equal(actual.steps.length, 2);
});

test('what is left at the end is found by an oracle, in the words of the command', () => {
    const fixture = fixtureOf('cancel.task.masked_defers_ack');
    fixture.script.splice(5);
    const { problem } = runFixture(lab, fixture);
    assert.equal(problem.oracle, 'task_leak');
    assert.match(problem.text, /^oracle task_leak at the end of the run: task 0\.1\.1/);
});

test('each rule that can be broken is found to be', () => {
    for (let plant = 1; plant <= 15; plant++) {
        const failed = IDS.filter((id) => {
            const fixture = fixtureOf(id);
            const record = runFixture(mutant, fixture, { plant });
            return fixtureGate(fixture, record, 'node', true).length > 0 || record.witness.length > 0;
        });
        assert.notEqual(failed.length, 0, `plant ${plant}`);
    }
});

test('a module in which nothing is planted breaks no rule', () => {
    for (const id of IDS) {
        assert.deepEqual(runFixture(mutant, fixtureOf(id)), runFixture(lab, fixtureOf(id)), id);
    }
});

test('a module that can not do it says what it lacks', () => {
    const own = new WebAssembly.Module(readFileSync(join(WEB, 'ebb-web/ebb.wasm')));
    assert.match(unfit(own), /no function lab_begin; expected ebb-lab\.wasm/);
    assert.match(unfit(lab, 3), /no rule to break; expected ebb-mutant\.wasm/);
    assert.equal(unfit(lab), undefined);
    assert.equal(unfit(mutant, 3), undefined);
    assert.match(runFixture(mutant, fixtureOf(IDS[0]), { plant: 99 }).error.text, /no rule 99; expected/);
});

test('a trace from elsewhere says who took part and which fields are missing', () => {
    const inspect = (plant) => {
        const { trace } = runFixture(mutant, fixtureOf('cancel.task.masked_defers_ack'), { plant });
        return inspectTrace(lab, Buffer.from(trace, 'base64'));
    };
    assert.deepEqual(inspect(), { ids: ['region 0.1.1', 'region 0.2.1', 'task 0.1.1'], missing: [] });
    const [{ event, fields }] = inspect(1).missing;
    assert.match(event, /^cancel_acked\(/);
    assert.deepEqual(fields, ['cancel_kind']);
});

test('events are written as the command writes them', () => {
    const callbacks = Object.fromEntries(Object.keys(IMPORTS).map((name) => [name, () => 0]));
    const abi = new Abi(lab, callbacks, (error) => error);
    const [worker, job, row] = [1n << 32n | 1n, 2n << 32n | 1n, 1n << 32n | 1n];
    const names = new Names();
    names.set('task', worker, 'worker');
    names.set('region', job, 'job');
    names.set('obligation', row, 'row');
    const untold = { cancelKind: '', severity: '', cancelEpoch: 0 };
    const plain = { taskId: 0n, regionId: job, value: 0, other: 0n, ...untold };
    const cancel = { cancelKind: 'USER', severity: 'polite', cancelEpoch: 1 };
    const event = (type, rest) => eventText(abi, names, { type, ...plain, ...rest });
    const cases = [
        [event('idle', {}), 'idle'],
        [event('obligation_leaked', { other: row, value: 3 }), 'obligation_leaked(row) lease'],
        [event('refused', { taskId: worker, value: -20 }), /^refused\(job\) EBB_\w+ by worker$/],
        [event('refused', { value: -20 }), /^refused\(job\) EBB_\w+$/],
        [event('task_polled', { taskId: worker, value: 1 }), 'task_polled(worker) lane cancel'],
        [event('task_polled', { taskId: 9n, value: 3 }), 'task_polled(job.closer) lane ready'],
        [event('stale_wake', { taskId: 9n, regionId: 0n }), 'stale_wake(0.0.9)'],
        [event('task_forced', { taskId: worker, value: 8, ...cancel }),
            'task_forced(worker) USER polite epoch 1 polls 8'],
        [event('cancel_acked', { taskId: worker, value: -1, other: 2n ** 64n - 1n, ...cancel }),
            'cancel_acked(worker) USER polite epoch 1 polls unbounded deadline never'],
        [event('region_cancelled', { value: 5, other: 1500000n, ...cancel }),
            'region_cancelled(job) USER polite epoch 1 polls 5 deadline 1500000ns'],
        [event('completed', { taskId: worker, value: -1, ...cancel }), 'completed(worker) EBB_CANCELLED'],
        [event('region_closed', { value: 0, other: 1n << 32n | 2n }),
            'region_closed(job) EBB_OK abandoned 1 leaked 2'],
        [event('masked', { taskId: worker, value: 2 }), 'masked(worker) depth 2'],
        [event('chain_truncated', { value: 24 }), 'chain_truncated(job) 24'],
    ];
    for (const [found, expected] of cases) {
        if (expected instanceof RegExp) assert.match(found, expected);
        else assert.equal(found, expected);
    }
});
