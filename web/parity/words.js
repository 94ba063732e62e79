/*
 * Events in the words of a fixture, with the names of its script in place of ids. cli/fixture_event.c says
 * the same; it is written again here, so that the two hosts can be wrong in different ways only.
 */
import { NAMES } from '../ebb-web/src/abi.js';

const FOREVER = 2n ** 64n - 1n;
const MS = 1000000n;
const POLLS_UNBOUNDED = 0xffffffff;

/** The events of the cancel protocol. */
const CANCEL = new Set(['region_cancelled', 'cancel_requested', 'cancel_strengthened', 'cancel_acked',
    'task_forced', 'cleanup_done', 'finalized', 'abandoned']);

/** What `value` of an event holds; the value of others is left out. */
const VALUES = {
    region_cancelled: 'polls', region_closed: 'status', region_joined: 'status', chain_truncated: 'number',
    task_polled: 'lane', task_woken: 'lane', cancel_requested: 'polls', cancel_strengthened: 'polls',
    cancel_acked: 'polls', task_forced: 'polls', finalized: 'status', completed: 'status', masked: 'depth',
    unmasked: 'depth', refused: 'status', illegal: 'number', task_joined: 'status',
    obligation_reserved: 'obligation', obligation_committed: 'obligation', obligation_aborted: 'obligation',
    obligation_leaked: 'obligation', finalizer_done: 'status', received: 'number', workflow: 'number',
};

export function isCancel(event) {
    return CANCEL.has(event.type);
}

export function isCancelType(type) {
    return CANCEL.has(type);
}

/** Its phase is the state of a region. */
export function isOfRegion(event) {
    return event.type.startsWith('region_') || event.type === 'chain_truncated';
}

export function idText(id) {
    return `${id >> 56n}.${id >> 32n & 0xffffffn}.${id & 0xffffffffn}`;
}

/** The names of ids. Ids of different kinds may be equal. */
export class Names {
    #of = { task: new Map(), region: new Map(), obligation: new Map() };

    set(kind, id, name) {
        this.#of[kind].set(id, name);
    }

    get(kind, id) {
        return this.#of[kind].get(id);
    }

    text(kind, id) {
        return this.get(kind, id) ?? idText(id);
    }

    /** The only tasks without a name are those that run the finalizers of a region. */
    task(event) {
        const closer = this.get('task', event.taskId) === undefined && event.regionId !== 0n;
        return closer ? `${this.text('region', event.regionId)}.closer` : this.text('task', event.taskId);
    }
}

/** A link of a chain of causes: "job USER polite "closed by the operator"" */
export function linkText(names, { region, kind, severity, message }) {
    const quoted = message === '' ? '' : ` "${message}"`;
    return `${names.get('region', region) ?? '?'} ${kind} ${severity}${quoted}`;
}

/** Whom the event is about, in brackets. */
function subject(names, event) {
    if (event.type === 'idle' || event.type === 'gap') return '';
    if (event.type.startsWith('obligation_')) return `(${names.text('obligation', event.other)})`;
    const region = isOfRegion(event) || event.type === 'refused' || event.taskId === 0n;
    return `(${region ? names.text('region', event.regionId) : names.task(event)})`;
}

function value(abi, { type, value: n }) {
    switch (VALUES[type]) {
    case 'status': return ` ${abi.name(NAMES.STATUS, n)}`;
    case 'lane': return ` lane ${abi.name(NAMES.LANE, n)}`;
    case 'depth': return ` depth ${n}`;
    case 'obligation': return ` ${abi.name(NAMES.OBLIGATION, n)}`;
    case 'number': return ` ${n >>> 0}`;
    default: return '';
    }
}

function cancel(event) {
    if (!isCancel(event) || event.cancelKind === '') return '';
    return ` ${event.cancelKind} ${event.severity} epoch ${event.cancelEpoch}`;
}

function time(ns) {
    if (ns === FOREVER) return 'never';
    return ns % MS === 0n ? `${ns / MS}ms` : `${ns}ns`;
}

function budget(event) {
    if (VALUES[event.type] !== 'polls') return '';
    const polls = event.value >>> 0;
    const text = ` polls ${polls === POLLS_UNBOUNDED ? 'unbounded' : polls}`;
    return event.type === 'task_forced' ? text : `${text} deadline ${time(event.other)}`;
}

function rest(names, event) {
    if (event.type === 'refused' && event.taskId !== 0n) return ` by ${names.text('task', event.taskId)}`;
    if (event.type !== 'region_closed' || event.other === 0n) return '';
    return ` abandoned ${event.other >> 32n} leaked ${event.other & 0xffffffffn}`;
}

/** "cancel_acked(worker) USER polite epoch 1 polls 1024 deadline 5000ms" */
export function eventText(abi, names, event) {
    const parts = [subject(names, event), value(abi, event), cancel(event), budget(event), rest(names, event)];
    return `${event.type}${parts.join('')}`;
}
