/*
 * The five parity scenarios as somebody would write them who has the package and no script: async functions
 * in regions, in Node and in a page. What is told of each is gathered from the runtime's trace.
 */
import { Runtime, TraceReader } from '../ebb-web/index.js';
import { plantRule, toBase64 } from './fixture.js';
import { Story } from './story.js';
import { Witnesses } from './witness.js';
import { Names, idText, linkText } from './words.js';

const TRACE_BYTES = 1 << 20;
const LIMIT_MS = 10000;

/** A promise that somebody else keeps. */
function later() {
    let keep;
    const promise = new Promise((resolve) => (keep = resolve));
    return Object.assign(promise, { keep });
}

/** Waits until the task is asked to stop: a script's `park`. */
function park(cx) {
    return cx.wait(later());
}

function expect(is, what) {
    if (!is) throw new Error(`expected ${what}`);
}

/* ---- scenarios ----------------------------------------------------------------------------------------- */

/**
 * One task, one cancel in a later turn, one checkpoint. What the script's task also tries, to pump from
 * inside its own poll, no function of the package can ask for.
 */
async function singleTaskCheckpoint(stage) {
    const job = stage.open('job');
    const goOn = later();
    const worker = stage.spawn(job, 'worker', async (cx) => {
        for (let i = 0; ; i++) {
            cx.checkpoint();
            await (i < 3 ? cx.yield() : goOn);
        }
    });
    await stage.turn();
    job.cancel({ kind: 'USER', message: 'abort signal' });
    await stage.turn();
    expect(worker.witness().phase === 'CancelRequested', 'a request that waits for a checkpoint');
    goOn.keep();
    await job.close();
}

/** The mask holds across an await; the first checkpoint after it acknowledges. */
async function maskedDeferral(stage) {
    const job = stage.open('job');
    const worker = stage.spawn(job, 'worker', async (cx) => {
        const write = stage.reserve(cx, 'write', 'transaction');
        await cx.mask(async () => {
            await cx.sleep(20);
            write.commit();
        });
        cx.checkpoint();
    });
    await stage.turn();
    job.cancel({ kind: 'TIMEOUT' });
    await stage.turn();
    expect(worker.witness().phase === 'CancelRequested', 'a request that waits for the mask');
    stage.clock.advance(20);
    await job.close();
}

/** Regions that tasks opened inside regions, told level by level and closed from the inside. */
async function nestedCascade(stage) {
    const job = stage.open('job');
    const middle = async (cx) => {
        const inner = stage.open('inner', cx, { collect: true });
        stage.spawn(inner, 'leaf1', park);
        try {
            await cx.wait(inner.join());
        } catch (asked) {
            await cx.mask(() => inner.join());
            throw asked;
        }
    };
    stage.spawn(job, 'boss', async (cx) => {
        const nest = stage.open('nest', cx);
        stage.spawn(nest, 'mid', middle);
        await cx.wait(nest.join());
    });
    await stage.turn();
    job.cancel({ kind: 'DISCONNECT', message: 'the tab was closed' });
    stage.readChain('inner');
    await job.close();
}

/**
 * Wakes and a cancel race in one turn. The script's `yield` is no checkpoint; here every wait of `cx` is one,
 * so the winner awaits a promise of its own. A cancel of a task that has ended stops in the package, which
 * knows that: what comes late here are wakes.
 */
async function lateWakeRace(stage) {
    const [losers, winners] = [stage.open('losers'), stage.open('winners')];
    const [knock, finish] = [later(), later()];
    const quick = stage.spawn(losers, 'quick', (cx) => cx.wait(knock));
    const winner = stage.spawn(winners, 'winner', () => finish);
    await stage.turn();
    knock.keep();
    stage.rt.wake(quick.id);
    losers.cancel({ kind: 'RACE_LOST' });
    stage.rt.wake(quick.id);
    winners.cancel({ kind: 'RACE_LOST' });
    finish.keep();
    stage.rt.wake(winner.id);
    await Promise.all([losers.close(), winners.close()]);
    const stale = stage.rt.stats().staleWakes;
    for (const task of [quick, winner]) stage.rt.wake(task.id);
    expect(stage.rt.stats().staleWakes === stale + 2, 'two wakes that came too late, counted');
}

/**
 * Obligations end as committed, aborted or leaked, and the finalizers of a task run before its leaks are
 * aborted. The package gives finalizers and obligations to tasks only: `job.closer` and `fence1`, which are
 * the region's own, are apart.
 */
async function obligationAndFinalizer(stage) {
    const job = stage.open('job');
    const side = stage.open('side', job);
    stage.apart.push('job.closer', 'fence1');
    const helper = async (cx) => {
        const flush = stage.reserve(cx, 'flush', 'io');
        await cx.yield();
        flush.commit();
    };
    const release = async (cx) => {
        const scope = stage.open('scope', cx, { cleanup: true });
        stage.spawn(scope, 'help', helper);
        expect((await scope.join()).status === 'ok', 'a cleanup scope that ends well');
    };
    stage.spawn(job, 'worker', async (cx) => {
        const [sent, row] = [stage.reserve(cx, 'sent', 'ack'), stage.reserve(cx, 'row', 'lease')];
        stage.reserve(cx, 'slot', 'permit');
        cx.defer(() => {});
        cx.defer(release);
        try {
            await park(cx);
        } finally {
            sent.commit();
            row.abort();
        }
    });
    stage.spawn(side, 'bystander', park);
    await stage.turn();
    job.cancel({ kind: 'LEASE_LOST', message: 'another owner' });
    const report = await job.close();
    expect(report.leaked.length === 1, 'the one leak in the report of the region');
    expect(String(stage.aborts) === 'row,slot', 'the hooks of what was aborted, once each');
}

export const SCENARIOS = {
    'parity.single_task_checkpoint': singleTaskCheckpoint,
    'parity.masked_deferral': maskedDeferral,
    'parity.nested_cascade': nestedCascade,
    'parity.late_wake_race': lateWakeRace,
    'parity.obligation_and_finalizer': obligationAndFinalizer,
};

/* ---- the stage ----------------------------------------------------------------------------------------- */

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

    advance(ms) {
        this.#ms += ms;
        for (const [id, { fn, due }] of this.#timers) {
            if (due <= this.#ms && this.#timers.delete(id)) fn();
        }
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
    #chains;
    aborts = []; /* the obligations whose hook has run */
    apart = []; /* what the fixture has and a scenario can't */
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

    spawn(region, name, fn) {
        const task = this.#name('task', region.spawn(fn, { name }), name);
        this.#tasks.push({ task, name });
        return task;
    }

    reserve(cx, name, kind) {
        return this.#name('obligation', cx.reserve(kind, () => this.aborts.push(name)), name);
    }

    /** The chain of causes of a region, root cause last. */
    readChain(name) {
        const { links } = this.#regions.get(name).causes();
        this.#chains = { last: links.map((link) => linkText(this.#names, link)) };
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

    record() {
        const bytes = this.rt.crash?.trace ?? this.rt.takeTrace({ flush: true });
        const story = new Story(this.rt.abi, this.#names);
        for (const event of new TraceReader(this.rt).push(bytes)) story.take(event, undefined);
        const { phases, outcomes, closure, places, missing } = story;
        return {
            actual: { phases, outcomes, closure, chains: this.#chains },
            places,
            ids: this.ids,
            trace: toBase64(bytes),
            missing,
            witness: this.#witnesses.violations,
            apart: this.apart,
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
 * @returns {Promise<object>} a Record without lines and events; `apart` is what the fixture has and it can't
 */
export async function runScenario(id, host, options = {}) {
    const stage = new Stage(host, options);
    let error;
    try {
        await limited(host, SCENARIOS[id](stage));
        await limited(host, stage.rt.close());
    } catch (caught) {
        error = { text: caught.message };
        stage.giveUp();
    }
    return { ...stage.record(), error };
}
