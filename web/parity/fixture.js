/*
 * Runs the script of a fixture in a module with the lab's exports (web/lab/lab.h), in Node and in a page, and
 * says what it did in the words of `ebb fixture show`.
 */
import { Abi, IMPORTS, NAMES } from '../ebb-web/src/abi.js';
import { TraceReader } from '../ebb-web/src/trace.js';
import { Story, hookProblem } from './story.js';
import { Witnesses } from './witness.js';
import { Names, idText, linkText } from './words.js';

const TRACE_BYTES = 1 << 20;
const LAB = ['lab_begin', 'lab_line', 'lab_result', 'lab_chain', 'lab_thing', 'lab_take', 'lab_fingerprint', 'lab_parity',
    'lab_check_end', 'lab_violation'];
const KINDS = ['', 'task', 'region', 'obligation'];
const DEAF = Object.fromEntries(Object.keys(IMPORTS).map((name) => [name, () => 0]));
const NO_HASH = '0'.repeat(32); /* of a trace with a gap */
const utf8 = new TextEncoder();

/** Where every script starts: a new runtime at time 0 with nothing but its root. */
export const SNAPSHOT = 'empty-root';

/**
 * @typedef {object} Record what a run did; JSON can carry it
 * @property {object} actual as `expect` of a fixture
 * @property {number[]} lines the script's line of each of its events
 * @property {object} places of each of its phases: [line, event]
 * @property {string[]} ids what took part: "task worker 0.1.1"
 * @property {string} trace its bytes, in base64
 * @property {{ line?: number, seq: string, event: string, fields: string[] }[]} missing cancel events that
 *     lack some of their eight fields, and which
 * @property {{ line?: number, task: string, text: string }[]} witness violations
 * @property {{ line: number, oracle?: string, text: string }} [problem] what an oracle found first
 * @property {{ line?: number, text: string }} [error] why it could not be run to its end
 */

/** Why this can't run scripts, or plant a rule that is broken; undefined if it can. */
export function unfit(module, plant) {
    const names = new Set(WebAssembly.Module.exports(module).map(({ name }) => name));
    const lacks = LAB.find((name) => !names.has(name));
    if (lacks !== undefined) return `it has no function ${lacks}; expected ebb-lab.wasm or ebb-mutant.wasm`;
    const deaf = plant !== undefined && !names.has('lab_plant');
    return deaf ? 'it has no rule to break; expected ebb-mutant.wasm' : undefined;
}

/** @param {number} oracle the rule that is broken from here on */
export function plantRule(abi, oracle) {
    if (abi.call.lab_plant(oracle) === 0) return;
    throw new RangeError(`there is no rule ${oracle}; expected the number of an oracle, 1 to 15`);
}

export function toBase64(bytes) {
    let text = '';
    for (const byte of bytes) text += String.fromCharCode(byte);
    return btoa(text);
}

/**
 * @param {WebAssembly.Module} module
 * @param {object} fixture the parsed file
 * @param {{ seed?: string | number | bigint, plant?: number }} options another seed than the fixture's own
 * @returns {Record}
 */
export function runFixture(module, fixture, { seed = fixture.seed, plant } = {}) {
    const run = new Run(module, fixture);
    let error;
    try {
        run.begin(BigInt(seed), plant);
        fixture.script.forEach((line, i) => run.line(line, i + 1));
        run.end();
    } catch (caught) {
        error = { line: run.at, text: caught.message };
    }
    return { ...run.record(), error };
}

/** What a trace from elsewhere says by itself: the ids in it, and its cancel events that lack a field. */
export function inspectTrace(module, bytes) {
    const abi = new Abi(module, DEAF, (error) => error);
    const story = new Story(abi, new Names());
    const ids = new Set();
    for (const event of new TraceReader({ abi }).push(bytes)) {
        story.take(event, undefined);
        if (event.regionId !== 0n) ids.add(`region ${idText(event.regionId)}`);
        if (event.taskId !== 0n) ids.add(`task ${idText(event.taskId)}`);
    }
    return { ids: [...ids], missing: story.missing };
}

/** The parity fingerprint of a trace: what hosts must agree on, however they wake and poll. */
export function parityOf(module, bytes) {
    return hashOfTrace(new Abi(module, DEAF, (error) => error), bytes);
}

function hashOfTrace(abi, bytes) {
    const at = abi.call.allocate(bytes.length);
    if (at === 0) return NO_HASH;
    abi.bytes(at, bytes.length).set(bytes);
    const status = abi.call.lab_parity(at, bytes.length);
    abi.call.release(at, bytes.length);
    return status < 0 ? NO_HASH : hashIn(abi);
}

/** The hash that a call has filled. */
function hashIn(abi) {
    const w = abi.words();
    return [w.u64(), w.u64()].map((half) => half.toString(16).padStart(16, '0')).join('');
}

/** One script in one instance. */
class Run {
    #fixture;
    #abi;
    #reader;
    #story;
    #witnesses;
    #names = new Names();
    #things = [];
    #pieces = []; /* of the trace, as they were handed over */
    #read = 0; /* how many of them were */
    #results = {};
    #chains = {};
    #steps = [];
    #fingerprint = '';
    #parity = '';
    #problem;
    at; /* the line in hand, from 1 */

    constructor(module, fixture) {
        this.#fixture = fixture;
        const trapped = (error) => new Error(`the module trapped: ${error.message}`);
        this.#abi = new Abi(module, this.#callbacks(), trapped);
        this.#reader = new TraceReader({ abi: this.#abi });
        this.#story = new Story(this.#abi, this.#names, fixture.watch);
        this.#witnesses = new Witnesses(this.#abi);
    }

    /** The tasks of a script are the module's own: the host is told of nothing but bytes. */
    #callbacks() {
        return { ...DEAF, bytes: (what, at, n) => this.#pieces.push(this.#abi.bytes(at, n).slice()) };
    }

    #must(status, what) {
        if (status < 0) throw this.#abi.error(status, what);
    }

    begin(seed, plant) {
        const { call } = this.#abi;
        const { snapshot } = this.#fixture;
        if (snapshot !== SNAPSHOT) throw new Error(`the snapshot is '${snapshot}'; expected '${SNAPSHOT}'`);
        this.#abi.bytes(this.#abi.at, 36).fill(0); /* the cleanup budgets: the defaults */
        this.#must(call.start(0, 0n, TRACE_BYTES, 0), 'start');
        if (plant !== undefined) plantRule(this.#abi, plant);
        this.#must(call.lab_begin(seed), 'lab_begin');
    }

    line(text, number) {
        this.at = number;
        this.#say(text);
        this.#result();
        this.#chain();
        this.#look();
        this.#take();
        this.#steps.push(this.#hash().slice(0, 8));
    }

    #say(text) {
        const { call } = this.#abi;
        const bytes = utf8.encode(text);
        const at = call.allocate(bytes.length + 1);
        this.#abi.bytes(at, bytes.length).set(bytes);
        const status = call.lab_line(at, bytes.length);
        const said = this.#abi.text(this.#abi.at, 160);
        call.release(at, bytes.length + 1);
        if (this.#name(status) === 'EBB_ERR_SYNTAX') throw new Error(said);
        this.#must(status, 'the line');
    }

    #name(status) {
        return this.#abi.name(NAMES.STATUS, status);
    }

    #result() {
        const status = this.#abi.call.lab_result();
        if (status !== 0) this.#results[this.at] = this.#name(status);
    }

    /** The things that this line has made, and how often the hooks of all of them have run. */
    #look() {
        const abi = this.#abi;
        for (let i = 0; abi.call.lab_thing(i) === 0; i++) {
            const w = abi.words();
            const thing = { id: w.u64(), kind: KINDS[w.u32()], aborts: w.u32(), name: abi.text(w.u32()) };
            if (i === this.#things.length) this.#names.set(thing.kind, thing.id, thing.name);
            this.#things[i] = thing;
        }
        for (const { kind, id, name } of this.#things) {
            if (kind === 'task') this.#witnesses.look(id, name, this.at);
        }
    }

    #chain() {
        this.#abi.call.lab_chain();
        const w = this.#abi.words();
        const links = Array.from({ length: w.u32() }, () => this.#link(w));
        if (links.length > 0) this.#chains[this.at] = links;
    }

    #link(w) {
        const region = w.u64();
        const kind = this.#abi.name(NAMES.CANCEL_KIND, w.u32());
        const severity = this.#abi.name(NAMES.SEVERITY, w.u32());
        return linkText(this.#names, { region, kind, severity, message: w.message() });
    }

    #take() {
        const status = this.#abi.call.lab_take();
        this.#violation();
        for (; this.#read < this.#pieces.length; this.#read++) {
            for (const event of this.#reader.push(this.#pieces[this.#read])) this.#story.take(event, this.at);
        }
        this.#must(status, 'its trace is too long or not readable');
    }

    /** What an oracle has found; the first one stands. */
    #violation() {
        if (this.#problem !== undefined || this.#abi.call.lab_violation() < 0) return;
        const w = this.#abi.words();
        const seq = w.u64();
        const [oracle, event, text] = [w.u32(), w.u32(), w.u32()].map((at) => this.#abi.text(at));
        const where = seq === 0n ? 'the end of the run' : `event ${seq} (${event})`;
        this.#problem = { line: this.at, oracle, text: `oracle ${oracle} at ${where}: ${text}` };
    }

    #hash() {
        return this.#abi.call.lab_fingerprint() < 0 ? NO_HASH : hashIn(this.#abi);
    }

    end() {
        const status = this.#abi.call.lab_check_end();
        this.#violation();
        if (status < 0 && this.#problem === undefined) throw this.#abi.error(status, 'the oracles');
        const obligations = this.#things.filter(({ kind }) => kind === 'obligation');
        const text = hookProblem(obligations, this.#story.closure);
        if (text !== undefined) this.#problem ??= { line: this.at, text };
        this.#fingerprint = this.#hash();
        this.#parity = hashOfTrace(this.#abi, Uint8Array.from(this.#pieces.flatMap((piece) => [...piece])));
    }

    /** @returns {Record} what is known by now */
    record() {
        const { phases, events, outcomes, closure, lines, places, missing } = this.#story;
        const actual = { phases, events, outcomes, closure, results: this.#results, steps: this.#steps };
        if (Object.keys(this.#chains).length > 0) actual.chains = this.#chains;
        return {
            actual: { ...actual, fingerprint: this.#fingerprint, parity: this.#parity },
            lines,
            places,
            ids: this.#things.map(({ kind, name, id }) => `${kind} ${name} ${idText(id)}`),
            trace: toBase64(this.#pieces.flatMap((piece) => [...piece])),
            missing,
            witness: this.#witnesses.violations,
            problem: this.#problem,
        };
    }
}
