import { able, count, h, setAttribute, setText } from './element.js';
import { EventList } from './events.js';
import { Inspector } from './inspector.js';
import { Wreck } from './kinds.js';
import { Lanes } from './lanes.js';
import { LANES } from './model.js';
import { Notices } from './notices.js';
import { Run } from './run.js';
import { SCENES } from './scenes.js';
import { compile, Mistake, Source } from './source.js';
import { Tide } from './tide.js';
import { TreeView } from './tree.js';
import { targetOf, verbOfKey, VERBS, whyNot } from './verbs.js';
import { explain } from './words.js';

const HIDDEN_MS = 1000; /* a page that is not seen has no frames: the trace is taken so often then */
const CALM_MS = 250;
const STATUS_MS = 5000;
const AFTER_MS = 1500; /* so long does time go on in the picture when all has ended */

const at = (id) => document.getElementById(id);

/**
 * The page: one run at a time, and the views of it. Whatever happens only asks for a frame; everything is
 * drawn there, once, and only what changed.
 */
class Page {
    #run;
    #asked = false;
    #pulled = 0; /* when, on the browser's clock */
    #polls = 0; /* of this run, as far as they are known */
    #playing; /* { lineOf }: the scene whose captions and mistakes are shown */
    #calm = matchMedia('(prefers-reduced-motion: reduce)');
    #calmly; /* a timer for the next frame, if nothing else asks for one */
    #status; /* a timer for the end of what the status line says */
    frames = { count: 0, ms: 0, worst: 0 };
    steps = 0;

    constructor() {
        this.notices = new Notices(at('notices'), at('said'), () => this.tree.focus());
        this.tree = new TreeView(at('tree'), {
            select: (node) => this.#selected(node),
            enter: () => this.inspector.focus(),
            key: (key) => this.#key(key),
            point: (node) => this.#point(node),
            fold: () => this.#reshape(),
            clicked: () => this.inspector.reveal(this.#calm.matches),
        });
        this.inspector = new Inspector(at('inspector'), {
            verb: (name) => this.#verb(VERBS[name]),
            key: (key) => this.#key(key),
            leave: () => this.tree.focus(),
            changed: () => this.ask(),
        });
        this.lanes = new Lanes(at('lanes'), at('pump-next'));
        this.events = new EventList(at('events'), at('fields'), {
            point: (node) => this.#point(node),
            dirty: () => this.ask(),
        });
        this.tide = new Tide(at('tide'));
        this.source = new Source(at, { run: () => this.#play() });
        this.#listen();
        this.#choose(Object.keys(SCENES)[0]);
        this.begin();
    }

    get run() {
        return this.#run;
    }

    /** All that has happened is to be seen. */
    get drawn() {
        return !this.#asked;
    }

    #listen() {
        at('tree').addEventListener('scroll', () => this.ask(), { passive: true });
        at('tempo').addEventListener('change', () => this.#setTempo());
        at('step').addEventListener('click', () => this.#step());
        at('again').addEventListener('click', () => this.begin());
        at('sweep').addEventListener('click', () => this.#sweep());
        at('trap').addEventListener('click', () => this.#trying(() => this.#run.trap()));
        at('still-trace').addEventListener('click', () => this.#save('trace'));
        at('still-journal').addEventListener('click', () => this.#save('journal'));
        at('still-again').addEventListener('click', () => this.#beginHere());
        explain(at('words'), at('ask'));
        at('only-cancel').addEventListener('change', (event) => this.#filter(event.target.checked));
        at('save-trace').addEventListener('click', () => this.#save('trace'));
        at('save-journal').addEventListener('click', () => this.#save('journal'));
        at('scenes').append(...Object.entries(SCENES).map(([name, scene]) => this.#sceneButton(name, scene)));
        new ResizeObserver(() => this.#measure()).observe(at('tide'));
        matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#measure());
        document.addEventListener('visibilitychange', () => this.ask());
        addEventListener('keydown', ({ key }) => key === 'Escape' && this.#hush());
        addEventListener('unhandledrejection', (event) => this.#unheard(event));
    }

    #sceneButton(name, { label }) {
        const button = h('button', { type: 'button', id: `scene-${name}` }, label);
        button.addEventListener('click', () => {
            this.#choose(name);
            this.#play();
        });
        return button;
    }

    #choose(name) {
        for (const each of Object.keys(SCENES)) setAttribute(at(`scene-${each}`), 'aria-pressed', each === name);
        this.source.show(SCENES[name]);
    }

    #measure() {
        this.tide.measure();
        this.events.stale();
        this.ask();
    }

    /* ---- runs ------------------------------------------------------------------------------------------ */

    /** A new runtime; the one before is dropped, and what it has to say later is of no interest. */
    begin() {
        this.#run?.drop();
        this.#playing = undefined;
        for (const view of [this.tree, this.lanes, this.events, this.tide, this.notices]) view.reset();
        const mine = (fn) => (arg) => run === this.#run && fn(arg);
        const run = this.#run = new Run(globalThis, {
            dirty: () => this.ask(),
            refused: mine((error) => this.#refused(error)),
            ended: mine((text) => this.notices.tell('report', text)),
        });
        this.#polls = 0;
        this.#setTempo();
        this.#caption('Begin with a scene, or select a region and spawn something in it.', '');
    }

    /** By a button that is gone afterwards: the focus goes to the new tree. */
    #beginHere() {
        this.tree.focusSoon = true;
        this.begin();
    }

    /** Plays what stands in the source, in a runtime of its own: what the page reports is of this scene. */
    async #play() {
        this.begin();
        const run = this.#run;
        const mine = this.#playing = { lineOf: () => undefined };
        const say = (text, state) => mine === this.#playing && this.#caption(text, state);
        const sleep = (ms) => run.tempo.sleep(ms);
        this.source.problem(undefined);
        try {
            const { play, lineOf } = await compile(this.source.text);
            mine.lineOf = lineOf;
            const last = await play({ run, say: (text) => say(String(text), 'plays'), sleep });
            say(typeof last === 'string' ? last : 'The scene is over.', 'over');
        } catch (error) {
            if (mine === this.#playing) this.#broke(run, error);
        }
    }

    /** A scene that ended before its end. */
    #broke(run, error) {
        const gone = run.rt.crash !== undefined;
        this.#caption(gone ? 'The scene is over: its runtime is gone.' : 'The scene has failed.', 'over');
        if (!gone) this.source.problem(this.#mistake(error));
    }

    /** An error as something to read: where it is in the source, and what it says. */
    #mistake(error) {
        const text = error instanceof Mistake ? error.message : `${error?.name ?? 'thrown'}: ${error?.message ?? error}`;
        return new Mistake(text, error?.line ?? this.#playing?.lineOf(error));
    }

    #caption(text, state) {
        setText(at('caption'), text);
        setAttribute(at('caption'), 'data-state', state);
    }

    /* ---- what a person does ---------------------------------------------------------------------------- */

    #key(key) {
        const verb = verbOfKey(key);
        if (verb === undefined) return false;
        this.#verb(verb);
        return true;
    }

    #verb(verb) {
        const { selected } = this.tree;
        if (selected === undefined) return; /* before the first frame */
        const why = this.#gone ? `${verb.label}: the runtime is gone. Start again.` : whyNot(verb, selected);
        this.#say(why ?? '');
        if (why !== undefined) return;
        this.#trying(() => verb.run(this.#run, targetOf(verb, selected), this.inspector.options()));
    }

    /** In the status line, for a while. */
    #say(text) {
        clearTimeout(this.#status);
        setText(at('status'), text);
        if (text !== '') this.#status = setTimeout(() => this.#say(''), STATUS_MS);
    }

    #hush() {
        this.#say('');
        this.notices.dismissAll();
    }

    /** The instance has trapped. */
    get #gone() {
        return this.#run.rt.crash !== undefined;
    }

    /** Reports what the runtime refuses. */
    #trying(fn) {
        try {
            if (!this.#gone) fn();
        } catch (error) {
            this.#refused(error);
        }
        this.ask();
    }

    /** A failure in the root, or of a scene's, which nobody waits for. Anything else is a bug of the page's. */
    #unheard(event) {
        const { reason } = event;
        if (reason === this.#run.rt.crash?.error) event.preventDefault(); /* the page shows that its runtime is gone */
        const isOurs = reason instanceof Wreck;
        if (!isOurs && this.#playing?.lineOf(reason) === undefined) return;
        event.preventDefault();
        if (isOurs) this.notices.tell(reason.who, `failed: ${reason.message}`, 'bad');
        else this.source.problem(this.#mistake(reason));
    }

    /** After a trap everybody is refused, and the page says so once. */
    #refused(error) {
        if (!this.#gone) this.notices.refused(error);
        this.ask();
    }

    #setTempo() {
        this.#run.tempo.mode = document.querySelector('#tempo :checked').value;
        this.ask();
    }

    async #step() {
        await this.#run.tempo.step();
        this.steps += 1;
        this.ask();
    }

    #sweep() {
        this.#pull();
        this.#run.model.sweep();
        this.lanes.sweep();
        this.ask();
    }

    #filter(only) {
        this.events.onlyCancel = only;
        this.ask();
    }

    #save(what) {
        this.#pull();
        this.#run.recording.save(what);
        const { full, bytes } = this.#run.recording[what];
        if (full) this.notices.tell('not all of it', `the first ${bytes >> 20} MiB of the ${what} are kept`);
        this.ask();
    }

    #selected(node) {
        this.inspector.show(node);
        this.ask();
    }

    #reshape() {
        this.#run.model.reshaped = true;
        this.ask();
    }

    #point(node) {
        this.tree.point(node);
    }

    /* ---- frames ---------------------------------------------------------------------------------------- */

    /** Something has changed. */
    ask() {
        if (document.hidden && performance.now() - this.#pulled > HIDDEN_MS) this.#pull();
        if (this.#asked) return;
        this.#asked = true;
        requestAnimationFrame((clock) => this.#frame(clock));
    }

    #pull() {
        this.#pulled = performance.now();
        for (const event of this.#run.pull()) {
            this.events.push(event);
            if (event.type === 'task_polled') this.#polled(event);
        }
    }

    #polled({ node, value, hostTurnId, microtaskBatchId }) {
        this.#polls += 1;
        const how = this.#run.starterOf(this.#polls);
        const of = { turn: Number(hostTurnId), batch: Number(microtaskBatchId), how };
        this.lanes.polled(node, LANES[value], of);
    }

    #frame(clock) {
        const began = performance.now();
        this.#asked = false;
        this.#pull();
        const run = this.#run;
        const { model } = run;
        const now = run.time();
        for (const node of model.changed) this.lanes.stands(node);
        for (const node of model.over) this.notices.ended(node);
        this.events.render(); /* first: it scrolls, which asks for a layout */
        const late = this.tree.render(model, now);
        if (model.reshaped) this.tide.arrange(this.tree.shown);
        this.inspector.render(now, this.#gone);
        this.#state(run);
        const more = this.lanes.render(clock, run.tempo);
        const how = { mode: run.tempo.mode, calm: this.#calm.matches, scrolled: this.tree.scrolled };
        const moves = this.tide.draw(this.#pictured(run, now), how);
        model.settle();
        this.#count(performance.now() - began);
        if (more || moves || late || model.reshaped) this.ask();
        else if (this.#goesOn(run)) this.#later();
    }

    /** Only time goes by: in the next frame, or in steps for those who want less to move. */
    #later() {
        if (!this.#calm.matches) this.ask();
        else this.#calmly ??= setTimeout(() => {
            this.#calmly = undefined;
            this.ask();
        }, CALM_MS);
    }

    #count(ms) {
        this.frames.count += 1;
        this.frames.ms += ms;
        this.frames.worst = Math.max(this.frames.worst, ms);
    }

    /** The time up to which the picture goes: a little after the last end it stands still. */
    #pictured({ model }, now) {
        return model.tasks > 0 ? now : Math.min(now, model.now + AFTER_MS);
    }

    #goesOn({ model, tempo, rt }) {
        if (tempo.mode === 'paused' || rt.crash !== undefined) return false;
        return model.tasks > 0 || this.#run.time() < model.now + AFTER_MS;
    }

    #state(run) {
        const { rt, tempo } = run;
        const state = stateOf(run);
        setAttribute(document.body, 'data-state', state);
        const steps = state === 'live' && tempo.mode === 'paused' && tempo.next() !== undefined;
        able(at('step'), steps);
        able(at('trap'), state !== 'crashed');
        able(at('sweep'), run.model.sweepable);
        able(at('again'), state !== 'empty');
        for (const what of ['trace', 'journal']) able(at(`save-${what}`), state !== 'empty');
        at('still').hidden = state === 'live';
        at('still-does').hidden = state === 'empty';
        setText(at('still-text'), stillText(state, rt));
        if (rt.crash === undefined) setText(at('tally'), tallyText(rt.stats()));
    }
}

function stateOf({ rt, ended, model }) {
    if (rt.crash !== undefined) return 'crashed';
    if (ended) return 'ended';
    return model.size <= 1 ? 'empty' : 'live';
}

function stillText(state, rt) {
    const texts = {
        live: '',
        empty: 'Nothing runs yet. The root region is selected: spawn something in it, or begin with a scene.',
        ended: 'The water is still. Everything has ended, the runtime too.',
        crashed: `${rt.crash?.error.code}: ${rt.crash?.error.message}. Its trace and its journal were saved.`,
    };
    return texts[state];
}

function tallyText({ tasks, regions, polls, obligations }) {
    const owed = obligations > 0 ? ` · ${obligations} owed` : '';
    return `${count(tasks, 'task')} · ${count(regions, 'region')}${owed} · ${count(polls, 'poll')}`;
}

globalThis.playground = new Page(); /* for those who look with the console: playground.run.rt */
