/**
 * What the page knows of a runtime: read from its trace, event by event, and filled in by asking it for the
 * live ones.
 */
export const PHASES = ['Running', 'CancelRequested', 'Cancelling', 'Finalizing', 'Completed'];
export const STATES = ['Open', 'Closing', 'Draining', 'Finalizing', 'Closed'];
export const LANES = ['none', 'cancel', 'timed', 'ready'];

const NEVER = 2n ** 64n - 1n;
const UNBOUNDED = 0xffffffff;
const ENDED_KEPT = 160;
const MARKS_KEPT = 48;
const POLLS_KEPT = 96;

/** What an event leaves on the timeline. */
const MARKS = {
    cancel_requested: 'asked', cancel_strengthened: 'asked', region_cancelled: 'asked',
    task_forced: 'forced', region_forced: 'forced', obligation_leaked: 'leaked',
};

const ENDS = new Set(['completed', 'finalized', 'region_closed']);

const MS = (ns) => Number(ns) / 1e6;

/**
 * One task or region. `spans` says in which phase it was from when on, `ended` when it was over. What is in
 * the second half is only known as long as it lives; afterwards it is what was known last.
 */
class Node {
    constructor(what, id, parent, from) {
        this.what = what;
        this.key = keyOf(what, id);
        this.id = id;
        this.parent = parent;
        this.level = parent === undefined ? 1 : parent.level + 1;
        this.name = what;
        this.children = [];
        this.handle = undefined; /* the package's object, once somebody said it */
        this.desk = undefined;
        this.spans = [];
        this.marks = [];
        this.masks = [];
        this.polls = [];
        this.from = from;
        this.ended = undefined;
        this.phase = '';
        this.status = '';
        this.abandoned = 0;
        this.leaked = 0;
        this.ranIn = '';

        this.lane = 'none';
        this.mask = 0;
        this.epoch = 0;
        this.reason = undefined;
        this.cause = undefined; /* of a region that was cancelled with PARENT: the root cause */
        this.forced = false;
        this.counts = undefined;
        this.budget = undefined;
    }

    /** How deep it is masked, as long as a cancel would wait for that. */
    get held() {
        return this.live && ['Created', 'Running', 'CancelRequested'].includes(this.phase) ? this.mask : 0;
    }

    get live() {
        return this.ended === undefined;
    }

    enter(phase, time) {
        if (phase === this.phase) return;
        this.phase = phase;
        this.spans.push({ phase, from: time });
    }

    mark(type, time) {
        this.marks.push({ type, time });
        if (this.marks.length > MARKS_KEPT) this.marks.shift();
    }

    polledAt(time, lane) {
        this.ranIn = lane;
        this.polls.push(time);
        if (this.polls.length > POLLS_KEPT) this.polls.shift();
    }

    masked(depth, time) {
        const last = this.masks.at(-1);
        const open = last !== undefined && last.to === undefined;
        if (depth > 0 && !open) this.masks.push({ from: time, to: undefined });
        if (depth === 0 && open) last.to = time;
        if (this.masks.length > MARKS_KEPT) this.masks.shift();
    }
}

function keyOf(what, id) {
    return `${what[0]}${id}`;
}

/**
 * The tree. `changed` has the nodes that something happened to since the last `settle`, `over` those of them
 * that ended; `reshaped` says that rows came or went.
 */
export class Model {
    #nodes = new Map();
    #names = new Map(); /* of what was spawned, until its event comes */
    #endedOrder = [];
    root;
    changed = new Set();
    over = [];
    reshaped = false;
    now = 0; /* of the last event */
    tasks = 0; /* that live */

    get size() {
        return this.#nodes.size;
    }

    /** Something has ended that `sweep` would take away. */
    get sweepable() {
        return this.#endedOrder.some((node) => node.parent !== undefined);
    }

    all() {
        return this.#nodes.values();
    }

    /** Says whose object a node is, before or after its event has come. */
    introduce(what, handle, desk) {
        const key = keyOf(what, handle.id);
        const node = this.#nodes.get(key);
        if (node === undefined) this.#names.set(key, { handle, desk });
        else this.#christen(node, handle, desk);
    }

    #christen(node, handle, desk) {
        node.name = handle.name;
        node.handle = handle;
        node.desk = desk ?? node.desk;
        this.changed.add(node);
    }

    /* ---- events ---------------------------------------------------------------------------------------- */

    /** Takes an event in, and gives it the node that it is about. */
    apply(event) {
        const time = MS(event.time);
        this.now = Math.max(this.now, time);
        const node = this.#about(event, time);
        event.node = node;
        event.ms = time;
        if (node === undefined) return;
        this.changed.add(node);
        if (node.parent !== undefined) this.changed.add(node.parent);
        this.#note(node, event, time);
    }

    #about(event, time) {
        const ofRegion = event.type.startsWith('region_') || event.type === 'chain_truncated';
        if (event.type === 'region_opened') return this.#opened(event, time);
        if (event.type === 'task_spawned') return this.#spawned(event, time);
        if (ofRegion || event.taskId === 0n) return this.#nodes.get(keyOf('region', event.regionId));
        return this.#nodes.get(keyOf('task', event.taskId));
    }

    #opened(event, time) {
        const parent = event.other === 0n ? undefined : this.#nodes.get(keyOf('region', event.other));
        const node = this.#add(new Node('region', event.regionId, parent, time));
        if (parent === undefined) this.root = node;
        return node;
    }

    #spawned(event, time) {
        const parent = this.#nodes.get(keyOf('region', event.regionId)) ?? this.root;
        this.tasks += 1;
        return this.#add(new Node('task', event.taskId, parent, time));
    }

    #add(node) {
        this.#nodes.set(node.key, node);
        node.parent?.children.push(node);
        this.reshaped = true;
        const known = this.#names.get(node.key);
        if (known !== undefined) this.#christen(node, known.handle, known.desk);
        this.#names.delete(node.key);
        return node;
    }

    #note(node, event, time) {
        const { type } = event;
        enterPhase(node, event, time);
        cancelled(node, event);
        if (MARKS[type] !== undefined) node.mark(MARKS[type], time);
        if (type === 'task_polled') node.polledAt(time, LANES[event.value]);
        if (type === 'masked' || type === 'unmasked') node.masked(event.value, time);
        if (MARKS[type] === 'asked') asked(node, event, time);
        if (type === 'abandoned') node.abandoned += 1;
        if (type === 'obligation_leaked') node.leaked += 1;
        if (ENDS.has(type)) this.#end(node, event, time);
    }

    #end(node, event, time) {
        node.ended = time;
        if (node.what === 'task') this.tasks -= 1;
        node.status = event.status.replace(/^EBB_/, '').toLowerCase();
        node.masked(0, time);
        node.lane = 'none';
        node.mask = 0;
        node.counts = undefined;
        if (node.what === 'region') {
            node.abandoned = Number(event.other >> 32n);
            node.leaked = Number(event.other & 0xffffffffn);
        }
        this.over.push(node);
        this.#endedOrder.push(node);
    }

    /* ---- asking ---------------------------------------------------------------------------------------- */

    /** Asks the runtime about those that changed and live. */
    refresh(rt) {
        for (const node of this.changed) {
            if (!node.live) continue;
            try {
                if (node.what === 'task') refreshTask(node, rt.info(node.id));
                else refreshRegion(node, rt.regionInfo(node.id), rt);
            } catch (error) {
                if (error.code !== 'EBB_ERR_STALE') throw error; /* its end is in the next piece */
            }
        }
    }

    /** After everybody has looked at what changed. */
    settle() {
        this.changed.clear();
        this.over = [];
        this.reshaped = false;
        this.#prune(ENDED_KEPT);
    }

    /** Takes the oldest of those that ended away; a region only when nothing in it is shown any more. */
    #prune(kept) {
        if (this.#endedOrder.length <= kept) return;
        const stay = [];
        let surplus = this.#endedOrder.length - kept;
        for (const node of this.#endedOrder) {
            if (surplus > 0 && node.parent !== undefined && node.children.length === 0) {
                this.#remove(node);
                surplus -= 1;
            } else {
                stay.push(node);
            }
        }
        this.#endedOrder = stay;
    }

    #remove(node) {
        this.#nodes.delete(node.key);
        const siblings = node.parent.children;
        siblings.splice(siblings.indexOf(node), 1);
        this.reshaped = true;
    }

    /** Takes all that has ended away. */
    sweep() {
        let size;
        do {
            size = this.#nodes.size;
            this.#prune(0);
        } while (this.#nodes.size < size);
    }

    /** From the root on, each before what is in it; `enters` says which regions are gone into. */
    order(enters) {
        const rows = [];
        const left = this.root === undefined ? [] : [this.root];
        while (left.length > 0) {
            const node = left.pop();
            rows.push(node);
            if (enters(node)) for (let i = node.children.length - 1; i >= 0; i--) left.push(node.children[i]);
        }
        return rows;
    }
}

/** Some events that name a region carry the phase of a task, which is not the region's. */
function enterPhase(node, { cancelPhase }, time) {
    const known = node.what === 'task' ? ['Created', ...PHASES] : STATES;
    if (known.includes(cancelPhase)) node.enter(cancelPhase, time);
}

/** Why, as far as an event says it: one that ended at once can't be asked any more. */
function cancelled(node, { cancelKind, severity, cancelEpoch }) {
    if (cancelKind === '') return;
    node.reason = { kind: cancelKind, severity, message: node.reason?.message ?? '' };
    node.epoch = cancelEpoch;
}

/** The budget begins where it was fixed, and again where it was tightened. */
function asked(node, event, time) {
    if (event.other === NEVER) return;
    node.budget = { from: time, until: MS(event.other), polls: pollsOf(event.value) };
}

function pollsOf(n) {
    return n === UNBOUNDED ? Infinity : n;
}

function refreshTask(node, info) {
    node.lane = info.lane;
    node.mask = info.mask;
    node.epoch = info.epoch;
    node.forced = info.forced;
    node.reason = reasonOf(info);
    if (node.budget !== undefined) node.budget.polls = pollsOf(info.polls);
}

function refreshRegion(node, info, rt) {
    node.epoch = info.epoch;
    node.reason = reasonOf(info);
    if (info.kind === 'PARENT') node.cause = rt.causes(node.id).links.at(-1);
    node.counts = { tasks: info.tasks, children: info.children, obligations: info.obligations };
}

function reasonOf(info) {
    return info.epoch === 0 ? undefined : { kind: info.kind, severity: info.severity, message: info.message };
}
