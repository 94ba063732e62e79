/*
 * The stage on which the fixtures are played through the package, in Node and in a page: a runtime as users have it,
 * with a clock that stands still. What is reported of a run is gathered from the runtime's trace.
 */
import { Runtime, TraceReader } from '../ebb-web/index.js';
import { plantRule, toBase64 } from './fixture.js';
import { SCENARIOS } from './scenarios.js';
import { Story } from './story.js';
import { Witnesses } from './witness.js';
import { Names, idText, linkText } from './words.js';

export { SCENARIOS };

const TRACE_BYTES = 1 << 20;
const LIMIT_MS = 10000;

/** The time of a scenario: it passes when somebody says so, and then the timers that are due are called. */
class Clock {
    #ms = 0;
    #timers = new Map();
    #last = 0;

    now = () => this.#ms;

    setTimeout = (fn, ms) => {
        this.#timers.set(++this.#last, { fn, due: this.#ms + ms });
        return this.#last;
    };

    clearTimeout = (id) => this.#timers.delete(id);

    /** Timers are called at their own time: a runtime that sees a gap takes it for a page that stood still. */
    advance(ms) {
        const end = this.#ms + ms;
        for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
            this.#ms = Math.max(this.#ms, next.due);
            this.#timers.delete(next.id);
            next.fn();
        }
        this.#ms = end;
    }

    #next(end) {
        let first;
        for (const [id, { fn, due }] of this.#timers) {
            if (due <= end && !(first?.due <= due)) first = { id, fn, due };
        }
        return first;
    }
}

/** A runtime for one scenario, and the names of what takes part. */
class Stage {
    #host;
    clock = new Clock();
    #names = new Names();
    #tasks = [];
    #regions = new Map();
    #witnesses;
    #chains = [];
    #kept = new Map(); /* witnesses by the name that the fixture has for them */
    #checks = [];
    #trace;
    aborts = []; /* the obligations whose hook has run */
    ids = [];

    constructor(host, { module, plant }) {
        this.#host = host;
        const { now, setTimeout, clearTimeout } = this.clock;
        this.rt = new Runtime({ ...host, now, setTimeout, clearTimeout }, { trace: TRACE_BYTES, module });
        if (plant !== undefined) plantRule(this.rt.abi, plant);
        this.#witnesses = new Witnesses(this.rt.abi);
        this.#name('region', this.rt.root, 'root');
    }

    #name(kind, thing, name) {
        this.#names.set(kind, thing.id, name);
        this.ids.push(`${kind} ${name} ${idText(thing.id)}`);
        return thing;
    }

    /** A region of the runtime, of a region, or of a task by its cx. */
    open(name, owner = this.rt, options = {}) {
        const region = this.#name('region', owner.region({ ...options, name }), name);
        this.#regions.set(name, region);
        return region;
    }

    region(name) {
        return this.#regions.get(name);
    }

    spawn(region, name, fn) {
        const task = this.#name('task', region.spawn(fn, { name }), name);
        this.#tasks.push({ task, name });
        return task;
    }

    /** An obligation of a task, by its cx, or of a region. */
    reserve(owner, name, kind) {
        return this.#name('obligation', owner.reserve(kind, () => this.aborts.push(name)), name);
    }

    /** The chain of causes of a region, root cause last: a script's `chain`. */
    readChain(name) {
        const { links } = this.#regions.get(name).causes();
        this.#chains.push(links.map((link) => linkText(this.#names, link)));
    }

    /** Keeps the witness of a task: a script's `witness`. */
    witness(task, name) {
        this.#look();
        this.#kept.set(name, task.witness());
    }

    /** Whether one witness may follow another: a script's `check`, whose answers the gate compares. */
    check(earlier, later) {
        this.#checks.push(this.#witnesses.verdict(this.#kept.get(earlier), this.#kept.get(later)));
    }

    /** Lets the host's loop turn, with a look at every witness before and after. */
    async turn() {
        this.#look();
        await new Promise((resolve) => this.#host.setTimeout(resolve, 0));
        this.#look();
    }

    #look() {
        for (const { task, name } of this.#tasks) if (!task.ended) this.#witnesses.look(task.id, name);
    }

    /** Nothing of it is to keep a process running. */
    giveUp() {
        this.rt.root.force();
        this.rt.close().catch(() => {});
    }

    /** Takes the trace: a script ends with its root open, so what the root's end adds is not compared. */
    take() {
        this.#trace ??= this.rt.crash?.trace ?? this.rt.takeTrace({ flush: true });
        return this.#trace;
    }

    record() {
        const bytes = this.take();
        const story = new Story(this.rt.abi, this.#names);
        for (const event of new TraceReader(this.rt).push(bytes)) story.take(event, undefined);
        const { phases, outcomes, closure, events, places, missing } = story;
        return {
            actual: { phases, outcomes, closure, events, chains: this.#chains, checks: this.#checks },
            places,
            ids: this.ids,
            trace: toBase64(bytes),
            missing,
            witness: this.#witnesses.violations,
        };
    }
}

/** Rejects when something takes longer than a scenario may. */
function limited(host, promise) {
    let timer;
    const late = new Promise((resolve, reject) => {
        timer = host.setTimeout(() => reject(new Error(`it did not end in ${LIMIT_MS} ms`)), LIMIT_MS);
    });
    return Promise.race([promise, late]).finally(() => host.clearTimeout(timer));
}

/**
 * Plays the scenario of that name.
 * @param {object} host as hostOf gives it
 * @param {{ module?: WebAssembly.Module, plant?: number }} options another module than the package's own
 * @returns {Promise<object>} a Record without lines; `actual.checks` has the answers to its checks, in order
 */
export async function runScenario(id, host, options = {}) {
    const stage = new Stage(host, options);
    let error;
    try {
        await limited(host, SCENARIOS[id](stage));
        stage.take();
        await limited(host, stage.rt.close());
    } catch (caught) {
        error = { text: caught.message };
        stage.giveUp();
    }
    return { ...stage.record(), error };
}
