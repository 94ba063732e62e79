/** The orders of the contract, and what has to hold of events and witnesses. */
import assert from 'node:assert/strict';

export const PHASES = ['Created', 'Running', 'CancelRequested', 'Cancelling', 'Finalizing', 'Completed'];
export const SEVERITIES = ['none', 'polite', 'urgent', 'forced'];
export const KINDS = {
    USER: 'polite', RACE_LOST: 'polite', DISCONNECT: 'polite', TIMEOUT: 'urgent', BUDGET: 'urgent',
    SIBLING_FAILED: 'urgent', LEASE_LOST: 'urgent', RESOURCE: 'urgent', SHUTDOWN: 'forced',
};
export const CANCEL_EVENTS = [
    'region_cancelled', 'cancel_requested', 'cancel_strengthened', 'cancel_acked', 'task_forced',
    'cleanup_done', 'finalized', 'abandoned',
];
/** What the report of a region has besides its status, if all went well in it. */
export const CLEAN = {
    abandoned: [], leaked: [], forced: [], counts: { abandoned: 0, leaked: 0, forced: 0 }, failures: [], suppressed: [],
};
const REGION_STATES = ['Open', 'Closing', 'Draining', 'Finalizing', 'Closed'];

/** A later witness of the same task may not go back in anything. */
export function assertFollows(earlier, later) {
    const wrong = whyNot(earlier, later);
    if (wrong !== undefined) assert.fail(`${wrong}: ${show(earlier)}\n${show(later)}`);
}

function whyNot(earlier, later) {
    const back = (order, field) => order.indexOf(later[field]) < order.indexOf(earlier[field]);
    if (later.task !== earlier.task || later.region !== earlier.region) return 'of another task or region';
    if (later.epoch < earlier.epoch) return 'the epoch went back';
    if (back(PHASES, 'phase')) return 'the phase went back';
    if (back(SEVERITIES, 'severity')) return 'the severity weakened';
    if (earlier.epoch === 0) return undefined;
    if (later.budget.deadline > earlier.budget.deadline) return 'the deadline widened';
    if (later.budget.polls > earlier.budget.polls) return 'the polls widened';
    return later.budget.priority < earlier.budget.priority ? 'the priority fell' : undefined;
}

function show({ budget, ...rest }) {
    const printable = (_, value) => (typeof value === 'bigint' ? `${value}` : value);
    return JSON.stringify({ ...rest, ...budget }, printable);
}

/** All eight fields, of things that exist, in an order that never goes back. Returns how many there are. */
export function assertCancelEvents(events) {
    const regions = new Set();
    const tasks = new Map();
    let [seq, turn, batch, found] = [-1n, 0n, 0n, 0];
    for (const event of events) {
        assert.ok(event.decisionSeq > seq, 'decision_seq rises');
        assert.ok(event.hostTurnId >= turn, `host_turn_id went back from ${turn} to ${event.hostTurnId}`);
        if (event.hostTurnId > turn) batch = 0n;
        assert.ok(event.microtaskBatchId >= batch, `microtask_batch_id went back from ${batch}`);
        [seq, turn, batch] = [event.decisionSeq, event.hostTurnId, event.microtaskBatchId];
        if (event.type === 'region_opened') regions.add(event.regionId);
        if (event.type === 'task_spawned') tasks.set(event.taskId, event.regionId);
        if (CANCEL_EVENTS.includes(event.type)) {
            assertEightFields(event, regions, tasks);
            found++;
        }
    }
    return found;
}

function assertEightFields(event, regions, tasks) {
    const text = `${event.type} ${event.decisionSeq}`;
    const ofRegion = event.type === 'region_cancelled';
    assert.equal(typeof event.taskId, 'bigint', text);
    if (ofRegion) assert.ok(event.taskId === 0n || tasks.has(event.taskId), `${text}: nobody's or a task's`);
    else assert.equal(tasks.get(event.taskId), event.regionId, `${text}: of a task of that region`);
    assert.ok(regions.has(event.regionId), `${text}: of a region that was opened`);
    assert.ok(Number.isInteger(event.cancelEpoch) && event.cancelEpoch >= 1, `${text}: ${event.cancelEpoch}`);
    const phases = ofRegion ? REGION_STATES : PHASES;
    assert.ok(phases.includes(event.cancelPhase), `${text}: ${event.cancelPhase}`);
    assert.ok([...Object.keys(KINDS), 'PARENT'].includes(event.cancelKind), `${text}: ${event.cancelKind}`);
    assert.equal(typeof event.decisionSeq, 'bigint', text);
    assert.ok(event.hostTurnId >= 1n && event.microtaskBatchId >= 1n, `${text}: turn and batch`);
    assert.ok(SEVERITIES.indexOf(event.severity) > 0, `${text}: severity ${event.severity}`);
}
