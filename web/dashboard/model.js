/*
 * The regions and tasks that the service tells of, with their past as far as the page has seen it. Times are milliseconds of
 * the page's clock. What ends between two events has gone through its phases in between: the page shows them one after the
 * other, STEP_MS each, so that they can be seen. What has ended stays for LINGER_MS.
 */
const STEP_MS = 400;
const LINGER_MS = 2600;
const YOUNG_MS = 900; /* what lived shorter goes without a word: requests, most of them */
const LINGERING = 400; /* at most */
const SPANS = 16; /* of one node */

const STATES = ['Open', 'Closing', 'Draining', 'Finalizing', 'Closed'];
const PHASES = ['Created', 'Running', 'CancelRequested', 'Cancelling', 'Finalizing', 'Completed'];

/* Regions and tasks are numbered apart. */
export const keyOf = (told) => (told.region === undefined ? `task ${told.task}` : `region ${told.region}`);

export class Model {
    #nodes = new Map();
    #lingering = new Set();
    roots = [];
    reshaped = true; /* since order() was called last */
    leftOut = { regions: 0, tasks: 0 };

    get size() {
        return this.#nodes.size;
    }

    get(key) {
        return this.#nodes.get(key);
    }

    /** A stream has begun: what it tells is all there is. */
    #forget() {
        this.#nodes.clear();
        this.#lingering.clear();
        this.roots = [];
        this.reshaped = true;
    }

    apply({ first, nodes, gone, left_out: leftOut }, now) {
        if (first) this.#forget();
        for (const told of nodes) this.#tell(told, now);
        for (const told of gone) this.#end(this.#nodes.get(keyOf(told)), now);
        this.leftOut = leftOut;
    }

    #tell(told, now) {
        const key = keyOf(told);
        const node = this.#nodes.get(key) ?? this.#make(key, told, now);
        const before = node.told;
        node.told = told;
        node.heard = now;
        this.#advance(node, told.state ?? told.phase, now);
        if (told.request !== undefined && before.request === undefined && told.request !== 'PARENT' && !node.asked)
            node.marks.push({ type: 'asked', time: now });
        if (told.masked && node.masks.at(-1)?.to !== undefined) node.masks.push({ from: now });
        if (!told.masked && node.masks.length > 0) node.masks.at(-1).to ??= now;
    }

    #make(key, told, now) {
        const what = told.region === undefined ? 'task' : 'region';
        const parent = told.in === undefined ? undefined : this.#nodes.get(`region ${told.in}`);
        const from = now - (told.age_ms ?? 0);
        const node = {
            key, what, parent, told, from, seen: now, heard: now,
            level: told.depth + 1, children: [], live: true, ended: undefined, status: '',
            spans: [{ phase: told.state ?? told.phase, from }],
            gone: false, endsAt: undefined,
            marks: [], polls: [], masks: told.masked ? [{ from: now }] : [], abandoned: 0,
        };
        this.#nodes.set(key, node);
        if (parent !== undefined) parent.children.push(node);
        else this.roots.push(node);
        this.reshaped = true;
        return node;
    }

    /** Through all phases up to `phase`, one after the other. */
    #advance(node, phase, now) {
        const all = node.what === 'region' ? STATES : PHASES;
        const last = node.spans.at(-1);
        if (last.phase === phase) return;
        const [from, to] = [all.indexOf(last.phase), all.indexOf(phase)];
        const through = to > from ? all.slice(from + 1, to + 1) : [phase];
        const begin = Math.max(now, last.from + STEP_MS);
        /* A region drains until its tasks have ended. */
        const waits = (one) => (node.what === 'region' && through.includes('Draining') && (one === 'Finalizing' || one === 'Closed') ? STEP_MS : 0);
        through.forEach((one, i) => node.spans.push({ phase: one, from: begin + i * STEP_MS + waits(one) }));
        if (node.spans.length > SPANS) node.spans.splice(1, node.spans.length - SPANS);
    }

    #wasAsked(node) {
        for (let n = node; n !== undefined; n = n.parent) if (n.told.request !== undefined || n.asked) return true;
        return false;
    }

    #end(node, now) {
        if (node === undefined || node.gone) return;
        node.gone = true;
        const asked = this.#wasAsked(node);
        node.status = asked ? 'cancelled' : 'ended';
        if (node.what === 'region' || asked) this.#advance(node, node.what === 'region' ? 'Closed' : 'Completed', now);
        else node.spans.push({ phase: 'Completed', from: now });
        node.endsAt = node.spans.at(-1).from;
        const known = now - node.seen >= YOUNG_MS || asked;
        if (known && this.#lingering.size < LINGERING) this.#lingering.add(node);
        else this.#remove(node);
    }

    #remove(node) {
        const siblings = node.parent?.children ?? this.roots;
        const at = siblings.indexOf(node);
        if (at >= 0) siblings.splice(at, 1);
        this.#nodes.delete(node.key);
        this.#lingering.delete(node);
        this.reshaped = true;
    }

    /** Lets go what has ended long enough ago. True if something still lingers. */
    settle(now) {
        for (const node of this.#lingering) {
            if (now >= node.endsAt && node.live) Object.assign(node, { live: false, ended: node.endsAt });
            if (now >= node.endsAt + LINGER_MS && node.children.length === 0) this.#remove(node);
        }
        return this.#lingering.size > 0;
    }

    /** The operator has cancelled it: what ends below it from now on was cancelled, even if nobody tells. */
    cancelled(node, now) {
        node.asked = true;
        node.marks.push({ type: 'asked', time: now });
    }

    /** Parents first; below a node for which `isOpen` is false there is nothing. */
    order(isOpen) {
        const out = [];
        const walk = (node) => {
            out.push(node);
            if (isOpen(node)) for (const child of node.children) walk(child);
        };
        for (const root of this.roots) walk(root);
        this.reshaped = false;
        return out;
    }
}

/** The phase that is to be seen at a time. */
export function phaseAt(node, now) {
    for (let i = node.spans.length - 1; i > 0; i--) if (node.spans[i].from <= now) return node.spans[i].phase;
    return node.spans[0].phase;
}
