/* A trace as lanes: the bytes of docs/trace.md, read into slices and arrows. Nothing here knows the page. */

const HEADER = 64;
const RECORD = 32;
const SHORT_NS = 500; /* of a slice whose length is not known */
const WORD = 2 ** 32;

const EV = {
    TIME: 1, GAP: 3, TEXT: 4, STRING: 6, NAMED: 7, PRESENT: 8,
    REGION_OPENED: 10, REGION_CLOSED: 16, REGION_STOPPING: 19,
    SPAWNED: 30, POLLED: 31, WOKEN: 32, COMPLETED: 39, POLL_ENDED: 48, WAITING: 49, DISCARDED: 50,
    OPERATION_BEGUN: 76, FUTURE_MADE: 80, FUTURE_AWAITED: 85,
    EXCHANGE_BEGUN: 92, TAKEN: 94, GIVEN: 95,
    MACHINE_SPAWNED: 120, MACHINE_QUEUED: 124, MACHINE_COMMITTED: 125, MACHINE_ROLLED_BACK: 126,
    TURN_BEGUN: 163, TURN_COMMITTED: 164, TURN_FENCED: 165, ACTIVITY_STARTED: 169, ACTIVITY_ENDED: 171,
};
const WITH_SITE = new Set([8, 10, 30, 60, 64]);
const WITH_NAME = new Set([7, 49, 76, 80, 90, 100]);
const TASK_PHASES = ['', 'Created', 'Running', 'CancelRequested', 'Cancelling', 'Finalizing', 'Completed'];
const REGION_STATES = ['', 'Open', 'Closing', 'Draining', 'Finalizing', 'Closed'];
const TO_REQUEST = 1;
const TO_INSTANCE = 2;

/** Calls `each` for every record, with its text. Throws if the bytes are no trace. */
function forEach(bytes, each) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const text = new TextDecoder();
    const magic = text.decode(bytes.subarray(0, 8));
    if (magic !== 'EBBTRACE') throw new Error('this is no trace');
    const r = { type: 0, phase: 0, value: 0, site: 0, what: 0, task: 0, region: 0, high: 0, low: 0, text: '' };
    let held = null;
    const flush = () => {
        if (held === null) return;
        held = null;
        r.text += text.decode();
        each(r);
    };
    for (let at = HEADER; at + RECORD <= bytes.length;) {
        if (view.getUint32(at, true) !== 0x4b4c4245) throw new Error(`no block at ${at}`);
        const end = at + RECORD * (1 + view.getUint32(at + 4, true));
        if (end > bytes.length) break; /* it was cut short */
        for (at += RECORD; at < end; at += RECORD) {
            const type = bytes[at];
            if (type === EV.TEXT) {
                const n = Math.min(24, view.getUint32(at + 4, true));
                /* A piece may end in the middle of a character. */
                if (held !== null) r.text += text.decode(bytes.subarray(at + 8, at + 8 + n), { stream: true });
                continue;
            }
            flush();
            held = r;
            const value = view.getUint32(at + 4, true);
            r.type = type;
            r.phase = bytes[at + 1];
            r.value = value;
            r.site = 0;
            r.what = 0;
            if (WITH_SITE.has(type)) {
                r.site = value >>> 8;
                r.value = value & 0xff;
            } else if (WITH_NAME.has(type)) {
                r.what = value >>> 22;
                r.site = (value >>> 12) & 1023;
            }
            r.task = view.getUint32(at + 12, true) & 0xffffff; /* the index: what has ended gives it up */
            r.taskGeneration = view.getUint32(at + 8, true);
            r.region = view.getUint32(at + 20, true) & 0xffffff;
            r.regionGeneration = view.getUint32(at + 16, true);
            r.low = view.getUint32(at + 24, true);
            r.high = view.getUint32(at + 28, true);
            r.text = '';
        }
    }
    flush();
}

class Lane {
    constructor(kind, id, name) {
        this.kind = kind;
        this.id = id;
        this.name = name;
        this.slices = []; /* { from, to, name, phase }, by `from`, one after the other */
        this.since = null; /* of the slice that is open */
        this.phase = '';
        this.waits = '';
        this.parked = null;
        this.pending = []; /* arrows that end at the next slice */
    }

    add(from, to, name, phase = '') {
        const last = this.slices.at(-1);
        const begin = last === undefined ? from : Math.max(from, last.to);
        this.slices.push({ from: begin, to: Math.max(to, begin), name, phase });
    }
}

/** What a trace shows: { lanes, arrows, from, to, events, lost }. Times are nanoseconds. */
class Reader {
    constructor() {
        this.lanes = [new Lane('host', '', 'host')];
        this.arrows = []; /* { from, at, to, end, kind } */
        this.strings = [];
        this.tasks = new Map();
        this.regions = new Map();
        this.futures = new Map();
        this.machines = new Map();
        this.instances = new Map();
        this.activities = new Map();
        this.given = new Map();
        this.messages = new Map();
        this.events = 0;
        this.lost = 0;
        this.now = 0;
        this.pollEnd = 0;
        this.first = null;
        this.running = null; /* the lane of the task that is polled */
    }

    lane(kind, id, name) {
        const lane = new Lane(kind, id, name);
        this.lanes.push(lane);
        return lane;
    }

    string(n) {
        return this.strings[n] ?? '';
    }

    arrow(from, at, to, end, kind) {
        if (from !== null && to !== null && from !== to) this.arrows.push({ from, at, to, end, kind });
    }

    /** The lane of the cause of what happens now. */
    cause(at) {
        if (this.running !== null) return this.running;
        this.lanes[0].add(at, at + SHORT_NS, 'host');
        return this.lanes[0];
    }

    begin(r, at) {
        const region = r.type === EV.REGION_OPENED || (r.type === EV.PRESENT && r.value === 1);
        const id = region ? `${r.region}.${r.regionGeneration}` : `${r.task}.${r.taskGeneration}`;
        const lane = this.lane(region ? 'region' : 'task', id, this.string(r.site));
        lane.phase = (region ? REGION_STATES : TASK_PHASES)[r.phase] ?? '';
        if (region) lane.since = at;
        (region ? this.regions : this.tasks).set(region ? r.region : r.task, lane);
    }

    ofRegion(r, at) {
        const lane = this.regions.get(r.region);
        const state = REGION_STATES[r.phase] ?? '';
        if (lane === undefined || lane.since === null || (state === lane.phase && r.type !== EV.REGION_CLOSED)) return;
        lane.add(lane.since, at, lane.phase, lane.phase);
        lane.phase = state;
        lane.since = r.type === EV.REGION_CLOSED ? null : at;
    }

    polled(lane, at) {
        if (lane.parked !== null && at > lane.parked) lane.add(lane.parked, at, `waits for ${lane.waits || 'a wake-up'}`, 'waits');
        for (const { from, at: then, kind } of lane.pending) this.arrow(from, then, lane, at, kind);
        lane.pending = [];
        lane.since = at;
        lane.parked = null;
        this.running = lane;
    }

    pollEnded(r, lane) {
        const end = r.high * WORD + r.low;
        this.pollEnd = Math.max(this.pollEnd, end);
        this.running = null;
        if (lane === undefined || lane.since === null) return;
        lane.add(lane.since, Math.max(end, lane.since), 'poll', lane.phase);
        lane.since = null;
        lane.parked = Math.max(end, 0);
    }

    ofTask(r, at) {
        const lane = this.tasks.get(r.task);
        if (r.type === EV.POLL_ENDED) this.pollEnded(r, lane);
        if (lane === undefined) return;
        if (r.phase > 0) lane.phase = TASK_PHASES[r.phase] ?? '';
        if (r.type === EV.POLLED) this.polled(lane, at);
        if (r.type === EV.WAITING) lane.waits = this.string(r.what);
        if (r.type === EV.WOKEN && lane.pending.length === 0) lane.pending.push({ from: this.cause(at), at, kind: 'wake' });
        if (r.type === EV.COMPLETED || r.type === EV.DISCARDED) lane.parked = null;
    }

    /* ---- instances, activities, machines ---- */

    open(map, key, kind, name, at) {
        if (!map.has(key)) map.set(key, this.lane(kind, '', `${kind} ${name}`));
        const lane = map.get(key);
        for (const { from, at: then, kind: why } of lane.pending) this.arrow(from, then, lane, at, why);
        lane.pending = [];
        lane.since = at;
        return lane;
    }

    close(lane, name, at) {
        if (lane === undefined || lane.since === null) return;
        lane.add(lane.since, Math.max(at, lane.since + SHORT_NS), name, 'Running');
        lane.since = null;
    }

    start(r, lane, at) {
        this.tasks.get(r.task)?.pending.push({ from: lane, at, kind: 'start' });
    }

    ofDurable(r, at) {
        const number = r.low;
        const key = `${r.high}.${r.low}`;
        switch (r.type) {
        case EV.TURN_BEGUN: this.start(r, this.open(this.instances, number, 'instance', r.text, at), at); break;
        case EV.TURN_COMMITTED: this.close(this.instances.get(number), `turn ${r.high}`, at); break;
        case EV.TURN_FENCED: this.close(this.instances.get(number), `turn ${r.high} fenced`, at); break;
        case EV.ACTIVITY_STARTED: this.start(r, this.open(this.activities, key, 'activity', r.text, at), at); break;
        case EV.ACTIVITY_ENDED: {
            const lane = this.activities.get(key);
            this.close(lane, r.text, at);
            if (lane !== undefined) this.instances.get(number)?.pending.push({ from: lane, at, kind: 'done' });
            this.activities.delete(key);
            break;
        }
        default: break;
        }
    }

    ofMachine(r, at) {
        const key = `${r.high}.${r.low}`;
        if (r.type === EV.MACHINE_SPAWNED) {
            this.machines.set(r.task, this.lane('machine', `${r.task}.${r.taskGeneration}`, 'machine'));
        } else if (r.type === EV.MACHINE_QUEUED) {
            this.messages.set(key, { from: r.region === 0 ? this.cause(at) : this.machines.get(r.region) ?? null, at });
        } else {
            const lane = this.machines.get(r.task);
            const message = this.messages.get(key);
            if (lane === undefined) return;
            lane.add(at, at + SHORT_NS, r.type === EV.MACHINE_COMMITTED ? 'dispatch' : 'dispatch, rolled back', 'Running');
            if (message !== undefined) this.arrow(message.from, message.at, lane, at, 'message');
            this.messages.delete(key);
        }
    }

    /* ---- trace contexts ---- */

    ofContext(r, at) {
        const span = r.text.slice(3, 52);
        const instance = this.instances.get(r.low) ?? null;
        if (r.type === EV.GIVEN) {
            this.given.set(span, { from: r.low !== 0 && instance !== null ? instance : this.cause(at), at });
            return;
        }
        let lane = this.activities.get(`${r.high}.${r.low}`) ?? null;
        if (r.value === TO_INSTANCE) lane = instance;
        if (r.value === TO_REQUEST) {
            [lane] = this.lanes;
            lane.add(at, at + SHORT_NS, this.regions.get(r.region)?.name ?? 'request', 'Running');
            this.start(r, lane, at);
        }
        const giver = this.given.get(span);
        if (giver !== undefined) this.arrow(giver.from, giver.at, lane, at, 'trace');
    }

    take(r) {
        this.events += 1;
        if (r.type === EV.TIME) this.now = r.high * WORD + r.low;
        if (r.type === EV.GAP) this.lost += r.high * WORD + r.low;
        if (r.type < EV.STRING) return;
        if (r.type === EV.STRING) {
            this.strings[r.value] = r.text;
            return;
        }
        const at = Math.max(this.now, this.pollEnd);
        this.first ??= at;
        if (r.type === EV.PRESENT || r.type === EV.REGION_OPENED || r.type === EV.SPAWNED) this.begin(r, at);
        else if (r.type === EV.NAMED) this.named(r);
        else if (r.type > EV.REGION_OPENED && r.type <= EV.REGION_STOPPING) this.ofRegion(r, at);
        else if (r.type > EV.SPAWNED && r.type <= EV.DISCARDED) this.ofTask(r, at);
        else if (r.type === EV.FUTURE_MADE || r.type === EV.OPERATION_BEGUN) this.futures.set(`${r.high}.${r.low}`, this.string(r.what));
        else if (r.type === EV.FUTURE_AWAITED) this.awaits(r);
        else if (r.type === EV.EXCHANGE_BEGUN) this.exchange(r);
        else if (r.type === EV.TAKEN || r.type === EV.GIVEN) this.ofContext(r, at);
        else if (r.type === EV.MACHINE_SPAWNED || (r.type >= EV.MACHINE_QUEUED && r.type <= EV.MACHINE_ROLLED_BACK)) this.ofMachine(r, at);
        else if (r.type >= EV.TURN_BEGUN) this.ofDurable(r, at);
    }

    named(r) {
        const lane = r.task === 0 ? this.regions.get(r.region) : this.tasks.get(r.task);
        if (lane !== undefined) lane.name = this.string(r.what);
    }

    awaits(r) {
        const lane = this.tasks.get(r.task);
        if (lane !== undefined) lane.waits = this.futures.get(`${r.high}.${r.low}`) ?? '';
    }

    exchange(r) {
        const lane = this.regions.get(r.region);
        if (lane !== undefined) lane.name = r.text;
    }

    end() {
        const to = Math.max(this.now, this.pollEnd, (this.first ?? 0) + SHORT_NS);
        for (const lane of this.lanes) {
            if (lane.since !== null) lane.add(lane.since, to, lane.kind === 'region' ? lane.phase : 'not ended', lane.phase);
            if (lane.parked !== null && lane.phase !== 'Completed') lane.add(lane.parked, to, `waits for ${lane.waits || 'a wake-up'}`, 'waits');
        }
        const lanes = this.lanes.filter((lane) => lane.slices.length > 0);
        const place = new Map(lanes.map((lane, i) => [lane, i]));
        const arrows = this.arrows.filter(({ from, to: lane }) => place.has(from) && place.has(lane))
            .map((arrow) => ({ ...arrow, from: place.get(arrow.from), to: place.get(arrow.to) }));
        return {
            lanes: lanes.map(({ kind, id, name, slices }) => ({ kind, id, name: `${name}${id === '' ? '' : ` #${id}`}`, slices })),
            arrows, from: this.first ?? 0, to, events: this.events, lost: this.lost,
        };
    }
}

/** @param {Uint8Array} bytes of a trace file, whole or cut short */
export function readTrace(bytes) {
    const reader = new Reader();
    forEach(bytes, (r) => reader.take(r));
    return reader.end();
}
