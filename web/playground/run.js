import { hostOf, Runtime } from '../ebb-web/index.js';
import { Desk } from './desk.js';
import { KINDS } from './kinds.js';
import { Model } from './model.js';
import { Recording } from './recording.js';
import { Tempo } from './tempo.js';

const TRACE = 1 << 20; /* bytes, between two times that we take it */

/**
 * One runtime from its start to its end, with its clock, what is known of it and what is recorded of it.
 * Nothing in here knows the page.
 */
export class Run {
    #listener;
    #counts = new Map();
    #began;
    #polls = 0;
    #batches = []; /* { how, polls }: up to that many polls, since the one before */

    /**
     * @param {typeof globalThis} global
     * @param {{ dirty: () => void, refused: (error: Error) => void, ended: (text: string) => void }} listener
     */
    constructor(global, listener) {
        this.#listener = listener;
        this.tempo = new Tempo(hostOf(global), {
            polls: () => this.#count(),
            ran: (how, polls) => this.#ran(how, polls),
        });
        this.#began = this.tempo.now();
        this.rt = new Runtime(this.tempo.host(), { trace: TRACE, journal: TRACE });
        this.model = new Model();
        this.recording = new Recording(this.rt);
        this.root = this.rt.root;
        this.model.introduce('region', this.root);
    }

    /** The polls that the kernel has made. */
    #count() {
        if (this.rt.crash === undefined) this.#polls = this.rt.stats().polls;
        return this.#polls;
    }

    #ran(how, polls) {
        if (polls > (this.#batches.at(-1)?.polls ?? 0)) this.#batches.push({ how, polls });
        this.#listener.dirty();
    }

    /** What brought the n-th poll about. They are asked for in order, and then forgotten. */
    starterOf(n) {
        while (this.#batches.length > 1 && this.#batches[0].polls < n) this.#batches.shift();
        return this.#batches[0]?.how || 'microtask';
    }

    /** Not asked of the root's `done`: that reports every failure in the root, and the page wants one. */
    get ended() {
        return this.root.ended;
    }

    /** The runtime's time, in milliseconds. */
    time() {
        return this.tempo.now() - this.#began;
    }

    /** What was traced since the last time; the model knows it now. */
    pull() {
        const events = this.recording.take();
        for (const event of events) this.model.apply(event);
        if (this.rt.crash === undefined) this.model.refresh(this.rt);
        else if (this.tempo.mode !== 'live') this.tempo.mode = 'live'; /* whoever waits for it goes on */
        return events;
    }

    /** It is of no interest any more. */
    drop() {
        this.tempo.close();
    }

    /* ---- verbs ----------------------------------------------------------------------------------------- */

    /** A task of one of the kinds. */
    spawn(region, kind, name = this.#name(KINDS[kind].label)) {
        return this.start(region, name, KINDS[kind].run, { timeout: KINDS[kind].timeout });
    }

    /**
     * A task of any function: it is called with its cx, its desk, and `enter` for those that it spawns
     * itself.
     */
    start(region, name, fn, options = {}) {
        const desk = this.#desk();
        const task = region.spawn(this.#body(desk, fn), { name, ...options });
        this.model.introduce('task', task, desk);
        return task;
    }

    open(region, name = this.#name('region')) {
        const opened = region.region({ name });
        opened.done.then((report) => this.#closed(opened, report), (error) => this.#failed(opened, error));
        this.model.introduce('region', opened);
        return opened;
    }

    close(region) {
        return region.close();
    }

    cancel(target, reason) {
        target.cancel(reason);
    }

    force(target) {
        target.force();
    }

    /** Makes the module write where it has no memory. Nothing but a bug would do that, so a person has to. */
    trap() {
        this.rt.abi.call.release(-16, 16);
    }

    /* ---- names and desks ------------------------------------------------------------------------------- */

    #name(label) {
        const n = (this.#counts.get(label) ?? 0) + 1;
        this.#counts.set(label, n);
        return `${label} ${n}`;
    }

    #desk() {
        return new Desk(this.tempo, this.#listener.refused);
    }

    #body(desk, fn) {
        return async (cx) => {
            desk.attend(cx);
            try {
                return await fn(cx, desk, (name, inner) => this.#enter(name, inner));
            } finally {
                desk.leave();
            }
        };
    }

    /** The function of a task that another task spawns: the page hears of it when it begins. */
    #enter(name, fn) {
        const desk = this.#desk();
        const body = this.#body(desk, fn);
        const entered = (cx) => {
            this.model.introduce('task', cx.task, desk);
            for (let region = cx.task.region; region !== undefined; region = region.parent) {
                this.model.introduce('region', region);
            }
            return body(cx);
        };
        return Object.defineProperty(entered, 'name', { value: name });
    }

    #closed(region, { abandoned, leaked }) {
        const tell = (text) => this.#listener.ended(`${region.name} closed ${text}`);
        for (const { site } of abandoned) tell(`without ${site}, which was abandoned`);
        for (const { site } of leaked) tell(`with a leak: ${site}`);
    }

    #failed(region, error) {
        if (this.rt.crash !== undefined) return;
        const who = error.who === undefined ? '' : ` (${error.who})`;
        this.#listener.ended(`${region.name} closed with a failure: ${error.message}${who}`);
    }
}
