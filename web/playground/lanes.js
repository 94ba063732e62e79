import { count, h, seconds, setAttribute, setText } from './element.js';

const SHOWN = 6; /* chips a lane */
const EVERY_MS = 120; /* what just ran is replaced no faster than one can see */
const BATCHES = 56;
const HOW = { microtask: 'a microtask', message: 'a message', timer: 'a timer', scene: 'the scene' };

/** One lane: what stands in it now, and behind that what it ran last. */
class Lane {
    constructor(name) {
        this.name = name;
        this.chips = Array.from({ length: SHOWN + 1 }, () => h('li', { hidden: true }));
        this.more = h('span', { className: 'more' });
        this.polls = h('span', { className: 'polls' });
        this.count = 0;
        this.inNow = new Set();
        this.ran = [];
        const list = h('ul', { 'aria-label': `${name} lane` }, ...this.chips);
        const label = h('span', { className: 'label' }, name);
        this.element = h('div', { className: 'lane' }, label, list, this.more, this.polls);
        this.element.dataset.lane = name;
    }

    ranOne(node) {
        this.count += 1;
        this.ran = [node, ...this.ran.filter((other) => other !== node)].slice(0, SHOWN);
    }

    render() {
        const here = [...this.inNow].slice(0, SHOWN);
        const before = this.ran.filter((node) => !this.inNow.has(node));
        const shown = [...here, ...before].slice(0, SHOWN).map(({ name }) => name);
        if (shown.length > here.length) shown.splice(here.length, 0, 'ran last:');
        this.chips.forEach((chip, i) => {
            chip.hidden = i >= shown.length;
            setText(chip, shown[i] ?? '');
            setAttribute(chip, 'class', ['now', 'label', 'ran'][Math.sign(i - here.length) + 1]);
        });
        setText(this.more, this.inNow.size > SHOWN ? `+${this.inNow.size - SHOWN}` : '');
        setText(this.polls, String(this.count));
    }
}

/**
 * The three lanes, and the pump that empties them: its last batches as bars, as high as they had polls,
 * coloured by what started them.
 */
export class Lanes {
    #lanes;
    #bars = Array.from({ length: BATCHES }, () => h('i'));
    #batches = []; /* { turn, batch, polls, how } */
    #said = h('p', { className: 'said' });
    #next;
    #drawn = 0;
    #dirty = false;

    constructor(element, next) {
        this.#next = next;
        this.#lanes = new Map(['cancel', 'timed', 'ready'].map((name) => [name, new Lane(name)]));
        const bars = h('div', { className: 'bars', 'aria-hidden': 'true' }, ...this.#bars);
        element.append(h('div', {}, ...[...this.#lanes.values()].map((lane) => lane.element)),
            h('div', { className: 'pump' }, bars, this.#said));
        this.reset();
    }

    reset() {
        this.#batches = [];
        for (const lane of this.#lanes.values()) Object.assign(lane, { count: 0, inNow: new Set(), ran: [] });
        this.#dirty = true;
        setText(this.#said, 'The pump has not run yet.');
    }

    /** Those that have ended are of no interest any more. */
    sweep() {
        for (const lane of this.#lanes.values()) lane.ran = lane.ran.filter((node) => node.live);
        this.#dirty = true;
    }

    /** A poll, in a batch that something started: `{ turn, batch, how }`. */
    polled(node, lane, of) {
        if (node !== undefined) this.#lanes.get(lane)?.ranOne(node);
        const last = this.#batches.at(-1);
        if (last?.turn === of.turn && last.batch === of.batch) last.polls += 1;
        else this.#batches.push({ ...of, polls: 1 });
        if (this.#batches.length > BATCHES) this.#batches.shift();
        this.#dirty = true;
    }

    /** Where a node stands now. */
    stands(node) {
        for (const lane of this.#lanes.values()) {
            const is = node.live && node.lane === lane.name;
            if (is === lane.inNow.has(node)) continue;
            if (is) lane.inNow.add(node);
            else lane.inNow.delete(node);
            this.#dirty = true;
        }
    }

    /** True if there is more to draw a little later. */
    render(clock, tempo) {
        this.#nextUp(tempo);
        if (!this.#dirty) return false;
        if (clock - this.#drawn < EVERY_MS) return true;
        this.#drawn = clock;
        this.#dirty = false;
        for (const lane of this.#lanes.values()) lane.render();
        this.#pump();
        return false;
    }

    #pump() {
        const from = BATCHES - this.#batches.length;
        this.#bars.forEach((bar, i) => {
            const batch = this.#batches[i - from];
            setAttribute(bar, 'data-how', batch?.how);
            bar.style.setProperty('--polls', Math.min(1, Math.log2((batch?.polls ?? 0) + 1) / 6).toFixed(2));
        });
        const last = this.#batches.at(-1);
        if (last === undefined) return;
        const { turn, batch, polls, how } = last;
        setText(this.#said, `turn ${turn}, batch ${batch}: ${count(polls, 'poll')}, by ${HOW[how]}`);
    }

    #nextUp(tempo) {
        if (tempo.mode === 'live') return setText(this.#next, '');
        const next = tempo.next();
        if (next === undefined) return setText(this.#next, 'nothing waits');
        const { how, ms } = next;
        return setText(this.#next, ms > 0 ? `next: ${HOW[how]}, in ${seconds(ms)}` : `held: ${HOW[how]}`);
    }
}
