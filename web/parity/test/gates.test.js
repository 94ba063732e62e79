import assert from 'node:assert/strict';
import test from 'node:test';

import { runFixture } from '../fixture.js';
import { adapterGate, fieldsGate, first, fixtureGate, parityGate, tell, witnessGate } from '../gates.js';
import { hookProblem, missingFields } from '../story.js';
import { Witnesses, whyNot } from '../witness.js';
import { fixtureOf, moduleOf } from './built.js';

const lab = moduleOf('ebb-lab.wasm');
const OWED = 'parity.obligation_and_finalizer';
const MASKED = 'cancel.task.masked_defers_ack';

/** The differences of a fixture's run from the fixture after `change` has had its way with that. */
function changed(id, change, ownSeed = true) {
    const fixture = fixtureOf(id);
    const record = runFixture(lab, fixtureOf(id));
    change(fixture.expect);
    return { fixture, found: fixtureGate(fixture, record, 'node', ownSeed) };
}

test('each part of what is expected is compared, and its line is known where it has one', () => {
    for (const [change, message] of [
        [(e) => e.phases.worker.splice(3, 1), 'line 13 `pump`, phase 4 of task worker at cancel_acked('],
        [(e) => e.phases.worker.push('Running'), 'phase 7 of task worker: expected Running; node: nothing'],
        [(e) => (e.phases.nobody = ['Created']), 'phase 1 of task nobody: expected Created; node: nothing'],
        [(e) => (e.outcomes.worker = 'EBB_OK'), 'line 13 `pump`, outcomes.worker: expected EBB_OK'],
        [(e) => delete e.outcomes.help, 'outcomes.help: expected nothing; node: EBB_OK'],
        [(e) => (e.closure.slot = 'aborted'), 'closure.slot: expected aborted; node: leaked'],
        [(e) => (e.results['16'] = 'EBB_OK'), 'line 16 `join job`, results.16: expected EBB_OK'],
        [(e) => (e.results['2'] = 'EBB_ERR_CLOSED'), 'line 2 `open side in job`, results.2'],
        [(e) => (e.chains = { 3: [] }), 'chains.3: expected []; node: nothing'],
        [(e) => e.events.pop(), 'line 15 `pump`, event 28: expected nothing; node: region_closed(job)'],
        [(e) => e.events.push('idle'), 'event 29: expected idle; node: nothing'],
        [(e) => (e.steps[6] = ''), 'line 7 `reserve fence1 fence in job`, fingerprint after this line'],
        [(e) => (e.fingerprint = '00'), 'fingerprint: expected 00; node: 7efb4a77'],
        [(e) => (e.parity = '00'), 'parity fingerprint: expected 00; node: '],
    ]) {
        const { fixture, found } = changed(OWED, change);
        assert.equal(found.length, 1, message);
        assert.ok(tell(fixture, found[0]).includes(message), `${tell(fixture, found[0])}\n${message}`);
    }
});

test('an expected event is cut at a word only', () => {
    const cut = (text) => changed(MASKED, (e) => (e.events[3] = text)).found.length;
    assert.equal(cut('region_cancel'), 1);
    assert.equal(cut('region_cancelled'), 0);
    assert.equal(cut('region_cancelled(job)'), 0);
    assert.equal(cut('region_cancelled(job) US'), 1);
});

test('with another seed the order and the fingerprint are not compared, and the ends are', () => {
    const order = (e) => Object.assign(e, { events: [], steps: [], fingerprint: '0'.repeat(32), parity: '' });
    assert.deepEqual(changed(OWED, order, false).found, []);
    assert.equal(changed(OWED, (e) => (e.outcomes.help = 'EBB_CANCELLED'), false).found.length, 1);
});

test('hosts are compared by phases, outcomes, closure and fingerprint', () => {
    const native = runFixture(lab, fixtureOf(OWED));
    const compare = (change) => {
        const other = structuredClone(native);
        change(other.actual);
        return parityGate(native, other, ['native', 'node']);
    };
    assert.deepEqual(compare(() => {}), []);
    assert.deepEqual(compare((a) => delete a.results['14']), []);
    for (const change of [
        (a) => a.phases.worker.pop(),
        (a) => delete a.phases.worker,
        (a) => (a.outcomes.help = 'EBB_CANCELLED'),
        (a) => delete a.closure.row,
        (a) => (a.fingerprint = ''),
        (a) => (a.parity = ''),
        (a) => (a.steps[0] = ''),
    ]) {
        assert.equal(compare(change).length, 1, String(change));
    }
});

test('a difference between hosts comes with the event at which it began', () => {
    const native = runFixture(lab, fixtureOf(OWED));
    const other = structuredClone(native);
    other.actual.fingerprint = '';
    other.actual.events[3] = 'something(else)';
    const found = parityGate({ ...native, lines: undefined }, other, ['native', 'node']);
    const message = tell(fixtureOf(OWED), first(found));
    assert.ok(message.startsWith('line 12 `cancel job LEASE_LOST "another owner"`, event 4: native: cancel_'));
    assert.ok(message.endsWith('; node: something(else)'));
});

test('a run that did not come to its end fails both gates', () => {
    const good = runFixture(lab, fixtureOf(OWED));
    const bad = { ...good, error: { line: 3, text: 'the module trapped' } };
    const [found, ...rest] = fixtureGate(fixtureOf(OWED), bad, 'node', true);
    assert.equal(tell({ script: ['', '', 'pump'] }, found),
        'line 3 `pump`, the run: expected its end; node: the module trapped');
    assert.deepEqual(rest, []);
    assert.equal(parityGate(good, bad, ['native', 'node']).length, 1);
    assert.equal(parityGate(bad, good, ['native', 'node']).length, 1);
});

test('what an oracle found belongs to its gate', () => {
    const good = runFixture(lab, fixtureOf(MASKED));
    const record = (oracle) => ({ ...good, problem: { line: 2, oracle, text: 'oracle ...' } });
    assert.equal(fixtureGate(fixtureOf(MASKED), record('task_leak'), 'node', true).length, 1);
    assert.equal(fieldsGate(record('task_leak'), 'node').length, 0);
    assert.equal(fixtureGate(fixtureOf(MASKED), record('required_fields'), 'node', true).length, 0);
    assert.equal(fieldsGate(record('required_fields'), 'node').length, 1);
});

test('the first difference is the one that comes first in the script', () => {
    const at = (line, what) => ({ line, what });
    assert.equal(first([at(undefined, 'a'), at(8, 'b'), at(2, 'c'), at(2, 'd')]).what, 'c');
    assert.equal(first([]), undefined);
});

/** What the package would leave that does as the script. */
function played(fixture) {
    const { actual } = runFixture(lab, fixture);
    const checks = adapterChecks(fixture);
    return { actual: { ...structuredClone(actual), chains: Object.values(actual.chains ?? {}), checks } };
}

function adapterChecks({ script, expect }) {
    return script.flatMap((line, i) => (line.startsWith('check ') ? [expect.results[i + 1] ?? 'EBB_OK'] : []));
}

test('the package is compared with the fixture by each part of what is expected', () => {
    const witnesses = 'cancel.task.budget_combine_monotone';
    for (const [id, change, what] of [
        [OWED, () => {}],
        [OWED, (a) => delete a.outcomes['job.closer'], 'outcomes.job.closer'],
        [OWED, (a) => (a.closure.row = 'leaked'), 'closure.row'],
        [OWED, (a) => a.phases.worker.pop(), 'phase 6 of task worker'],
        [OWED, (a) => (a.parity = '0'), 'parity fingerprint'],
        [OWED, (a) => a.events.splice(a.events.findIndex((e) => e.startsWith('cancel_acked(worker')), 1), 'cancels.worker'],
        [witnesses, (a) => (a.checks[1] = 'EBB_OK'), 'checks.1'],
        [witnesses, (a) => a.checks.pop(), 'checks.5'],
        [witnesses, (a) => (a.events = a.events.map((e) => e.replace('deadline 400ms', 'deadline 401ms'))), 'cancels.job'],
        [witnesses, (a) => (a.events = a.events.map((e) => e.replace('polls 100', 'polls 99'))), 'cancels.job'],
        ['parity.nested_cascade', (a) => a.chains[0].pop(), 'chains.0'],
        ['parity.nested_cascade', (a) => a.chains.pop(), 'chains.0'],
    ]) {
        const fixture = fixtureOf(id);
        const record = played(fixture);
        change(record.actual);
        const [found] = adapterGate(fixture, runFixture(lab, fixture), record, 'node');
        assert.equal(found?.what, what);
    }
});

test('polls are compared until they are charged', () => {
    const id = 'cancel.task.witness_phase_monotone';
    const fixture = fixtureOf(id);
    const reference = runFixture(lab, fixture);
    const record = played(fixture);
    const last = record.actual.events.findLastIndex((event) => event.startsWith('cancel_strengthened(worker)'));
    record.actual.events[last] = record.actual.events[last].replace(/polls \d+/, 'polls 7');
    assert.deepEqual(adapterGate(fixture, reference, record, 'node'), []);
});

/* ---- fields -------------------------------------------------------------------------------------------- */

const EVENT = {
    type: 'cancel_acked', taskId: 1n, regionId: 1n, cancelEpoch: 1, cancelPhase: 'Cancelling',
    cancelKind: 'USER', decisionSeq: 9n, hostTurnId: 1n, microtaskBatchId: 1n,
};

test('each of the eight fields is missed', () => {
    assert.deepEqual(missingFields(EVENT), []);
    for (const [field, name, value] of [
        ['taskId', 'task_id', 0n],
        ['regionId', 'region_id', 0n],
        ['cancelEpoch', 'cancel_epoch', 0],
        ['cancelPhase', 'cancel_phase', ''],
        ['cancelPhase', 'cancel_phase', '?'],
        ['cancelKind', 'cancel_kind', ''],
        ['cancelKind', 'cancel_kind', undefined],
        ['decisionSeq', 'decision_seq', 0n],
        ['hostTurnId', 'host_turn_id', 0n],
        ['microtaskBatchId', 'microtask_batch_id', 0n],
    ]) {
        assert.deepEqual(missingFields({ ...EVENT, [field]: value }), [name]);
    }
});

test('an obligation that was aborted has run its hook once, and a committed one never', () => {
    const closure = { row: 'aborted', slot: 'leaked', sent: 'committed' };
    const ran = (...aborts) => hookProblem(
        ['row', 'slot', 'sent'].map((name, i) => ({ name, aborts: aborts[i] })), closure);
    assert.equal(ran(1, 1, 0), undefined);
    assert.equal(ran(0, 1, 0), 'obligation row is aborted; its abort hook ran 0 times');
    assert.equal(ran(1, 2, 0), 'obligation slot is leaked; its abort hook ran 2 times');
    assert.equal(ran(1, 1, 1), 'obligation sent is committed; its abort hook ran 1 times');
    assert.equal(hookProblem([{ name: 'flush', aborts: 1 }], closure),
        'obligation flush is lost; its abort hook ran 1 times');
});

test('only the cancel of a region may be nobody\'s', () => {
    assert.deepEqual(missingFields({ ...EVENT, type: 'region_cancelled', taskId: 0n }), []);
    assert.deepEqual(missingFields({ ...EVENT, taskId: 0n }), ['task_id']);
});

test('the gate names the event and what it lacks', () => {
    const missing = [{ line: 1, seq: '9', event: 'cancel_acked(job)', fields: ['task_id', 'cancel_kind'] }];
    const [found] = fieldsGate({ missing }, 'node');
    assert.equal(tell(fixtureOf(MASKED), found), 'line 1 `open job`, event 9, cancel_acked(job): '
        + 'expected all eight fields; node: no task_id, no cancel_kind');
});

/* ---- witnesses ----------------------------------------------------------------------------------------- */

const WITNESS = {
    task: 1n, region: 1n, epoch: 1, phase: 3, severity: 1, kind: 1, deadline: 5n, polls: 9, priority: 2,
};
const STRONGER = { ...WITNESS, epoch: 2, phase: 4, severity: 2, deadline: 4n, polls: 8, priority: 3 };

test('a witness may follow itself and a stronger one, and nothing else', () => {
    assert.equal(whyNot(WITNESS, WITNESS), undefined);
    assert.equal(whyNot(WITNESS, STRONGER), undefined);
    for (const [part, value, why] of [
        ['task', 2n, 'another task'],
        ['region', 2n, 'another region'],
        ['epoch', 0, 'epoch went back'],
        ['phase', 2, 'phase went back'],
        ['severity', 0, 'severity went back'],
        ['deadline', 6n, 'deadline grew'],
        ['polls', 10, 'polls grew'],
        ['priority', 1, 'priority fell'],
    ]) {
        assert.match(whyNot(WITNESS, { ...WITNESS, [part]: value }), new RegExp(why));
    }
});

test('before the first request the budget is not compared', () => {
    const before = { ...WITNESS, epoch: 0 };
    assert.equal(whyNot(before, { ...WITNESS, deadline: 50n, polls: 90, priority: 0 }), undefined);
});

/** An ABI with one task, whose witness is what `phase` says, and a rule of its own. */
function moduleWith(check) {
    const memory = new DataView(new ArrayBuffer(4096));
    const words = () => {
        let at = 0;
        const u64 = () => memory.getBigUint64((at += 8) - 8, true);
        const u32 = () => memory.getUint32((at += 4) - 4, true);
        return { u64, u32 };
    };
    const witness = () => {
        memory.setUint32(28, abi.phase, true);
        return 0;
    };
    const bytes = (at, n) => new Uint8Array(memory.buffer, at, n);
    const call = { witness, witness_check: check };
    const abi = { phase: 0, at: 0, bytes, words, name: () => 'it said no', call };
    return abi;
}

function lookedAt(abi, phases) {
    const witnesses = new Witnesses(abi);
    phases.forEach((phase, i) => {
        abi.phase = phase;
        witnesses.look(1n, 'worker', i + 1);
    });
    return witnesses.violations;
}

test('a module whose own rule lets everything pass is caught', () => {
    assert.deepEqual(lookedAt(moduleWith(() => 0), [3, 4, 4]), []);
    const text = 'its phase went back from 4 to 3; the module says: it may follow';
    assert.deepEqual(lookedAt(moduleWith(() => 0), [3, 4, 3]), [{ line: 3, task: 'worker', text }]);
});

test('a module that refuses what may follow is caught', () => {
    const text = 'nothing is wrong with it; the module says: it said no';
    assert.deepEqual(lookedAt(moduleWith(() => -40), [3, 4]), [{ line: 2, task: 'worker', text }]);
});

test('the gate names the task and what its witness did', () => {
    const [found] = witnessGate({ witness: [{ line: 1, task: 'worker', text: 'it went back' }] }, 'node');
    assert.equal(tell(fixtureOf(MASKED), found),
        'line 1 `open job`, the witness of task worker: expected one that may follow; node: it went back');
});
