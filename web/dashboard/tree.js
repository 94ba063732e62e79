/*
 * Regions and tasks as a tree whose rows lie over the tide, the picture of the playground: what each has been through in the
 * last seconds. Only the rows that can be seen are elements, so that ten thousand cost no more than thirty. The tree has the
 * focus, and says which of its rows is meant.
 */
import { h, setAttribute, setText, setVariable } from './element.js';
import { phaseAt } from './model.js';
import { age, confirmButton, disarm } from './rows.js';
import { Tide } from './tide.js';

const OVER = 4; /* rows above and below those that can be seen */
const AXIS = 24; /* px of the tide above the first row */
const FRAME_MS = 30;
const CALM_MS = 1000;
const FRAMES = 500;

const countOf = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;

function taskFacts({ waits, doing, begun_at: begun, masked }) {
    return [`${waits ? 'waits for ' : ''}${doing ?? ''}${begun === undefined ? '' : ` begun at ${begun}`}`, masked ? 'masked' : ''];
}

function regionFacts(node, now) {
    const { tasks, children, request, message, left_ms: left } = node.told;
    return [
        [tasks > 0 ? countOf(tasks, 'task') : '', children > 0 ? countOf(children, 'region') : ''].filter(Boolean).join(', ') || 'empty',
        request === undefined ? '' : `${request}${message ? ` "${message}"` : ''}`,
        left === undefined || node.gone ? '' : `${age(Math.max(0, Math.round(left - (now - node.heard))))} left`,
    ];
}

function factsOf(node, now) {
    if (node.gone) return node.status;
    const facts = node.what === 'task' ? taskFacts(node.told) : regionFacts(node, now);
    if (node.told.age_ms !== undefined) facts.push(age(Math.round(now - node.from)));
    return facts.filter(Boolean).join(' · ');
}

/** One row. */
class Row {
    constructor(node, cancel) {
        this.node = node;
        this.name = h('span', { className: 'name' });
        this.facts = h('span', { className: 'facts' });
        this.phase = h('span', { className: 'state' });
        const words = h('span', { className: 'words' }, this.name, this.facts);
        const name = h('span', { role: 'gridcell', className: 'who' }, h('span', { className: 'twist' }), words);
        const phase = h('span', { role: 'gridcell', className: 'phase' }, this.phase);
        const act = h('span', { role: 'gridcell', className: 'act' });
        if (node.what === 'region') {
            this.cancel = confirmButton('Cancel', node.told.site ?? node.told.region, (armed) => cancel(node, armed));
            this.cancel.tabIndex = -1;
            act.append(this.cancel);
        }
        this.element = h('div', { role: 'row', id: node.key.replace(' ', '-'), className: `row ${node.what}` }, name, phase, act);
        this.element.dataset.key = node.key;
        setAttribute(this.element, 'aria-level', node.level);
        setVariable(this.element, '--level', String(node.level - 1));
    }

    update(index, { now, isOpen, selected }) {
        const { node, element } = this;
        const phase = phaseAt(node, now);
        node.phase = phase; /* for the picture */
        setText(this.name, node.told.site ?? '?');
        setText(this.facts, factsOf(node, now));
        setText(this.phase, phase);
        setAttribute(element, 'data-phase', phase);
        setAttribute(element, 'data-gone', node.live ? undefined : '');
        setAttribute(element, 'aria-rowindex', index + 2);
        setAttribute(element, 'aria-expanded', node.children.length === 0 ? undefined : isOpen);
        setAttribute(element, 'aria-selected', selected);
        setVariable(element, '--at', String(index));
        if (this.cancel !== undefined) this.cancel.hidden = node.gone || node.parent === undefined;
    }
}

export class TreeView {
    #model;
    #host;
    #rows = new Map();
    #shut = new Set(); /* keys of regions that are folded */
    #shown = []; /* nodes, in the order of their rows */
    #selected;
    #drawn = 0;
    #frame;
    #runs = false;
    #written = -1; /* when the rows were written last */
    #calm = matchMedia('(prefers-reduced-motion: reduce)');
    frames = []; /* how long the last of them took, ms */

    constructor(model, host) {
        this.#model = model;
        this.#host = host;
        this.canvas = h('canvas', { id: 'tide', 'aria-hidden': 'true' });
        this.body = h('div', { role: 'rowgroup', className: 'rows' });
        const heading = (text) => h('span', { role: 'columnheader' }, text);
        const head = h('div', { role: 'rowgroup', className: 'unseen' },
            h('div', { role: 'row', 'aria-rowindex': '1' }, heading('Region, task'), heading('Phase'), heading('Actions')));
        this.element = h('div', { id: 'tree', role: 'treegrid', tabIndex: 0, ariaLabel: 'Regions and tasks' }, head, this.body);
        this.water = h('div', { className: 'water' }, this.canvas, this.element);
        this.tide = new Tide(this.canvas);
        this.element.addEventListener('scroll', () => this.#ask());
        this.element.addEventListener('click', (event) => this.#clicked(event));
        this.element.addEventListener('keydown', (event) => this.#pressed(event));
        new ResizeObserver(() => this.#measure()).observe(this.water);
        matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#measure());
    }

    #measure() {
        if (this.water.clientHeight === 0) return;
        this.rowPx = undefined;
        this.tide.measure();
        this.#drawn = 0;
        this.#written = -1;
        this.#ask();
    }

    start() {
        this.#runs = true;
        this.#measure();
        this.#ask();
    }

    stop() {
        this.#runs = false;
    }

    /** The model has changed. */
    changed() {
        this.#written = -1;
        this.#ask();
    }

    /* ---- frames ------------------------------------------------------------------------------------------------------ */

    #ask() {
        if (this.#runs) this.#frame ??= requestAnimationFrame((clock) => this.#draw(clock));
    }

    /** Time goes by in the picture: it is drawn thirty times a second, or once for those who want less to move. */
    #draw(clock) {
        this.#frame = undefined;
        const gap = this.#calm.matches ? CALM_MS : FRAME_MS;
        const scrolled = this.element.scrollTop;
        if (scrolled !== this.scrolled || this.#written < 0 || clock - this.#drawn >= gap) {
            const began = performance.now();
            this.#drawn = clock;
            this.scrolled = scrolled;
            this.#render(began);
            this.frames.push(performance.now() - began);
            if (this.frames.length > FRAMES) this.frames.shift();
        }
        if (this.#calm.matches) setTimeout(() => this.#ask(), CALM_MS / 4);
        else this.#ask();
    }

    #render(now) {
        const lingers = this.#model.settle(now);
        if (this.#model.reshaped) this.#arrange();
        if (this.#written < 0 || lingers || now - this.#written > 200 || this.#moved) this.#writeRows(now);
        this.tide.draw(now, { mode: 'live', calm: this.#calm.matches, scrolled: this.scrolled });
    }

    get #moved() {
        return this.scrolled !== this.writtenAt;
    }

    #arrange() {
        this.#shown = this.#model.order((node) => !this.#shut.has(node.key));
        this.tide.arrange(this.#shown);
        setVariable(this.body, '--rows', String(this.#shown.length));
        setAttribute(this.element, 'aria-rowcount', this.#shown.length + 1);
        let node = this.#selected;
        while (node !== undefined && this.#model.get(node.key) === undefined) node = node.parent;
        this.#selected = node ?? this.#shown[0];
        this.#written = -1;
    }

    #writeRows(now) {
        const height = this.#rowHeight();
        const first = Math.max(0, Math.floor(this.scrolled / height) - OVER);
        const last = Math.min(this.#shown.length, Math.ceil((this.scrolled + this.element.clientHeight) / height) + OVER);
        const wanted = new Map();
        for (let i = first; i < last; i++) wanted.set(this.#shown[i].key, i);
        const selected = this.#shown.indexOf(this.#selected);
        if (selected >= 0) wanted.set(this.#selected.key, selected);
        for (const [key, row] of this.#rows) if (!wanted.has(key) || row.node !== this.#shown[wanted.get(key)]) this.#drop(key, row);
        for (const [key, i] of wanted) this.#write(key, i, now);
        setAttribute(this.element, 'aria-activedescendant', this.#rows.get(this.#selected?.key)?.element.id);
        this.#written = now;
        this.writtenAt = this.scrolled;
    }

    #rowHeight() {
        return this.rowPx ??= parseFloat(getComputedStyle(this.element).getPropertyValue('--row'));
    }

    #drop(key, row) {
        this.#rows.delete(key);
        row.element.remove();
    }

    #write(key, index, now) {
        const node = this.#shown[index];
        let row = this.#rows.get(key);
        if (row === undefined) {
            row = new Row(node, (n, armed) => this.#cancel(n, armed));
            this.#rows.set(key, row);
            this.body.append(row.element);
        }
        row.update(index, { now, isOpen: !this.#shut.has(key), selected: node === this.#selected });
    }

    /* ---- an operator ------------------------------------------------------------------------------------------------- */

    async #cancel(node, armed) {
        if (!armed) return countsOf(node);
        const { say, change } = this.#host;
        await say(`cancel of ${node.told.site}`, change(`api/v1/regions/${node.told.region}/cancel`).then(() => {
            this.#model.cancelled(node, performance.now());
            this.changed();
        }));
        return undefined;
    }

    #select(index) {
        this.#selected = this.#shown[Math.min(this.#shown.length - 1, Math.max(0, index))];
        const top = this.#shown.indexOf(this.#selected) * this.#rowHeight();
        const { scrollTop, clientHeight } = this.element;
        if (top < scrollTop) this.element.scrollTop = top;
        else if (top + this.#rowHeight() > scrollTop + clientHeight) this.element.scrollTop = top + this.#rowHeight() - clientHeight;
        this.#written = -1;
        this.#ask();
    }

    #fold(node, shut) {
        if (shut) this.#shut.add(node.key);
        else this.#shut.delete(node.key);
        this.#model.reshaped = true;
        this.changed();
    }

    #clicked(event) {
        const key = event.target.closest('.row')?.dataset.key;
        const index = this.#shown.findIndex((node) => node.key === key);
        if (index < 0) return;
        const node = this.#shown[index];
        this.#select(index);
        if (event.target.closest('.twist') !== null && node.children.length > 0) this.#fold(node, !this.#shut.has(key));
    }

    #pressed(event) {
        const node = this.#selected;
        if (event.ctrlKey || event.metaKey || event.altKey || node === undefined || event.target !== this.element) return;
        const at = this.#shown.indexOf(node);
        const isOpen = node.children.length > 0 && !this.#shut.has(node.key);
        const page = Math.max(1, Math.floor(this.element.clientHeight / this.#rowHeight()) - 1);
        const keys = {
            ArrowDown: () => this.#select(at + 1),
            ArrowUp: () => this.#select(at - 1),
            PageDown: () => this.#select(at + page),
            PageUp: () => this.#select(at - page),
            Home: () => this.#select(0),
            End: () => this.#select(this.#shown.length - 1),
            ArrowRight: () => (node.children.length > 0 && !isOpen ? this.#fold(node, false) : isOpen && this.#select(at + 1)),
            ArrowLeft: () => (isOpen ? this.#fold(node, true) : this.#select(this.#shown.indexOf(node.parent ?? node))),
            Delete: () => this.#rows.get(node.key)?.cancel?.click(),
            Escape: () => this.#rows.forEach((row) => row.cancel !== undefined && disarm(row.cancel)),
        };
        if (!Object.hasOwn(keys, event.key)) return;
        keys[event.key]();
        event.preventDefault();
    }
}

/** What a cancel would reach, as far as it is known. */
function countsOf(node) {
    let [tasks, regions] = [0, 0];
    const walk = (n) => {
        if (n.what === 'task') tasks++;
        else regions++;
        n.children.forEach(walk);
    };
    walk(node);
    return `Cancel ${countOf(regions, 'region')}, ${countOf(tasks, 'task')}?`;
}
