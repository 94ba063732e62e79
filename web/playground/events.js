import { h, setAttribute, setText } from './element.js';
import { WORDS } from './words.js';

const ROW = 22;
const KEPT = 4000;
const MOVES = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
const CUT = 500; /* taken away at once, so that it is not done for each event */
const IN_CANCEL = new Set(['region_cancelled', 'cancel_requested', 'cancel_strengthened', 'cancel_acked',
    'task_forced', 'cleanup_done', 'finalized', 'abandoned']);
const FIELDS = ['task_id', 'region_id', 'cancel_epoch', 'cancel_phase', 'cancel_kind', 'decision_seq',
    'host_turn_id', 'microtask_batch_id', 'severity', 'value', 'other', 'text'];
const ABOUT = { cancel_epoch: 'epoch', cancel_kind: 'reason', host_turn_id: 'turn, batch',
    microtask_batch_id: 'turn, batch', value: 'value, other', other: 'value, other' };

/**
 * The trace as a list, of which only the rows that are seen have elements. It follows the newest until one
 * scrolls away from it. `#all` has the last KEPT events, `#some` those of them that belong to the cancel
 * protocol.
 */
export class EventList {
    #element;
    #fields;
    #listener;
    #all = [];
    #some = [];
    #onlyCancel = false;
    #rows = [];
    #sheet = h('div', { className: 'sheet', role: 'presentation' });
    #values = new Map();
    #follows = true;
    #active; /* the event that is looked at */
    #dirty = true;

    /** @param {{ point: (node) => void, dirty: () => void }} listener */
    constructor(element, fields, listener) {
        this.#element = element;
        this.#fields = fields;
        this.#listener = listener;
        element.append(this.#sheet);
        for (const name of FIELDS) this.#field(name);
        element.addEventListener('scroll', () => this.#scrolled());
        element.addEventListener('keydown', (event) => this.#pressed(event));
        element.addEventListener('pointermove', (event) => this.#look(this.#eventAt(event.target)));
        element.addEventListener('pointerleave', () => this.#leave());
        element.addEventListener('blur', () => this.#leave());
    }

    #field(name) {
        const value = h('dd', {}, '–');
        this.#values.set(name, value);
        this.#fields.append(h('div', {}, h('dt', { title: WORDS[ABOUT[name]] ?? '' }, name), value));
    }

    get #list() {
        return this.#onlyCancel ? this.#some : this.#all;
    }

    reset() {
        this.#all = [];
        this.#some = [];
        this.#active = undefined;
        this.#follows = true;
        this.#dirty = true;
        for (const value of this.#values.values()) setText(value, '–');
    }

    set onlyCancel(only) {
        this.#onlyCancel = only;
        this.#follows = true;
        this.#dirty = true;
    }

    /** Its size has changed. */
    stale() {
        this.#dirty = true;
    }

    /** `event` with its node and its time, as of Model.apply. */
    push(event) {
        event.who = event.node?.name ?? '';
        this.#all.push(event);
        if (IN_CANCEL.has(event.type)) this.#some.push(event);
        this.#dirty = true;
    }

    #trim(list) {
        if (list.length <= KEPT + CUT) return;
        const cut = list.length - KEPT;
        list.splice(0, cut);
        if (list === this.#list && !this.#follows) this.#element.scrollTop -= cut * ROW;
    }

    /* ---- drawing --------------------------------------------------------------------------------------- */

    render() {
        if (!this.#dirty) return;
        this.#dirty = false;
        this.#trim(this.#all);
        this.#trim(this.#some);
        const list = this.#list;
        this.#sheet.style.height = `${list.length * ROW}px`;
        if (this.#follows) this.#element.scrollTop = list.length * ROW;
        const first = Math.max(0, Math.floor(this.#element.scrollTop / ROW));
        const n = Math.ceil(this.#element.clientHeight / ROW) + 1;
        for (let i = 0; i < n; i++) this.#draw(this.#rowAt(i), list[first + i], first + i, list.length);
        for (let i = n; i < this.#rows.length; i++) this.#rows[i].element.hidden = true;
        setAttribute(this.#element, 'data-events', this.#all.length);
        this.#mark();
        if (this.#active === undefined && this.#some.length > 0) this.#detail(this.#some.at(-1));
    }

    #rowAt(i) {
        if (this.#rows[i] === undefined) {
            const cells = ['seq', 'time', 'type', 'who', 'why'].map((name) => h('span', { className: name }));
            const element = h('div', { role: 'option', className: 'event', id: `event-${i}` }, ...cells);
            this.#sheet.append(element);
            this.#rows[i] = { element, cells, event: undefined, at: -1 };
        }
        return this.#rows[i];
    }

    #draw(row, event, at, total) {
        row.element.hidden = event === undefined;
        if (row.at !== at) row.element.style.transform = `translateY(${at * ROW}px)`;
        row.at = at;
        if (event === undefined) return;
        setAttribute(row.element, 'aria-setsize', total);
        setAttribute(row.element, 'aria-posinset', at + 1);
        if (row.event === event) return;
        row.event = event;
        [event.decisionSeq, (event.ms / 1000).toFixed(3), event.type, event.who, event.cancelKind]
            .forEach((text, i) => setText(row.cells[i], String(text)));
        setAttribute(row.element, 'data-type', event.type);
        setAttribute(row.element, 'data-phase', event.cancelPhase || undefined);
        setAttribute(row.element, 'data-cancel', IN_CANCEL.has(event.type) ? '' : undefined);
    }

    #mark() {
        const row = this.#rows.find((one) => one.event === this.#active && !one.element.hidden);
        for (const one of this.#rows) setAttribute(one.element, 'aria-selected', String(one === row));
        setAttribute(this.#element, 'aria-activedescendant', row?.element.id);
    }

    /* ---- looking at one -------------------------------------------------------------------------------- */

    #eventAt(target) {
        return this.#rows.find((row) => row.element === target.closest?.('.event'))?.event;
    }

    #look(event) {
        if (event === undefined || event === this.#active) return;
        this.#active = event;
        this.#listener.point(event.node);
        this.#detail(event);
        this.#mark();
    }

    /** Until somebody looks at one, it is the last of the cancel protocol. */
    #detail(event) {
        const values = valuesOf(event);
        FIELDS.forEach((name, i) => setText(this.#values.get(name), values[i]));
    }

    #leave() {
        this.#active = undefined;
        this.#listener.point(undefined);
        this.#mark();
    }

    #scrolled() {
        const { scrollTop, scrollHeight, clientHeight } = this.#element;
        this.#follows = scrollTop + clientHeight >= scrollHeight - ROW;
        this.#dirty = true;
        this.#listener.dirty();
    }

    #pressed(event) {
        if (!Object.hasOwn(MOVES, event.key) || this.#list.length === 0) return;
        event.preventDefault();
        const list = this.#list;
        const known = list.indexOf(this.#active);
        const from = known < 0 ? list.length : known;
        const at = Math.min(list.length - 1, Math.max(0, from + MOVES[event.key]));
        this.#reveal(at);
        this.#look(list[at]);
        this.#listener.dirty();
    }

    #reveal(at) {
        const { scrollTop, clientHeight } = this.#element;
        const [top, bottom] = [at * ROW, (at + 1) * ROW];
        if (top < scrollTop) this.#element.scrollTop = top;
        else if (bottom > scrollTop + clientHeight) this.#element.scrollTop = bottom - clientHeight;
        this.#follows = at === this.#list.length - 1;
        this.#dirty = true;
    }
}

function valuesOf(event) {
    const all = [idText(event.taskId), idText(event.regionId), event.cancelEpoch, event.cancelPhase,
        event.cancelKind, event.decisionSeq, event.hostTurnId, event.microtaskBatchId, event.severity,
        event.status || event.value, otherText(event.other), event.text];
    return all.map((value) => (value === '' ? '–' : String(value)));
}

/** As the command shows them: runtime.index.generation. */
function idText(id) {
    return id === 0n ? '–' : `${id >> 56n}.${id >> 32n & 0xffffffn}.${id & 0xffffffffn}`;
}

/** A time, an id, or another number: what it is depends on the event. */
function otherText(other) {
    return other >> 56n > 0n && other >> 56n < 255n ? idText(other) : String(other);
}
