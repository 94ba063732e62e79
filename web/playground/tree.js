import { count, h, seconds, setAttribute, setText, setVariable } from './element.js';
import { PHASES, STATES } from './model.js';

/** What stands below a name: where it runs, what holds it, why it was asked to stop. */
function factsOf(node) {
    const facts = node.what === 'task' ? taskFacts(node) : regionFacts(node);
    if (node.reason !== undefined) facts.push(node.reason.kind);
    if (node.abandoned > 0) facts.push(node.what === 'task' ? 'abandoned' : `${node.abandoned} abandoned`);
    if (node.leaked > 0) facts.push(`${node.leaked} leaked`);
    return facts;
}

function taskFacts(node) {
    if (!node.live) return [node.status];
    const facts = [node.lane === 'none' ? 'parked' : `${node.lane} lane`];
    if (node.held > 0) facts.push(node.held === 1 ? 'masked' : `masked ×${node.held}`);
    if (node.desk?.leases.length > 0) facts.push(count(node.desk.leases.length, 'lease'));
    if (node.forced) facts.push('forced');
    return facts;
}

function regionFacts(node) {
    if (!node.live) return [node.status];
    const { tasks = 0, children = 0 } = node.counts ?? {};
    return [[count(tasks, 'task'), children > 0 ? count(children, 'region') : ''].filter(Boolean).join(', ')];
}

const A_FRAME = 24; /* rows */

function firstOf(set, n) {
    const first = [];
    for (const item of set) {
        if (first.length === n) break;
        first.push(item);
    }
    return first;
}

/** One row: a tree item whose element is made once, and touched when its node has changed. */
class Row {
    constructor(node) {
        this.node = node;
        this.stops = (node.what === 'task' ? PHASES : STATES).map(() => h('i'));
        this.name = h('span', { className: 'name' });
        this.facts = h('span', { className: 'facts' });
        this.phase = h('span', { className: 'phase' });
        this.budget = h('span', { className: 'budget' });
        this.drain = h('span', { className: 'drain' });
        this.element = this.#element(node);
    }

    #element(node) {
        const twist = h('span', { className: 'twist' });
        const about = h('span', { className: 'words' }, this.name, this.facts);
        const who = h('span', { className: 'who' }, twist, about);
        const track = h('span', { className: 'track' }, ...this.stops);
        const said = h('span', { className: 'said' }, this.phase, this.budget);
        const stage = h('span', { className: 'stage' }, track, this.drain, said);
        const element = h('div', { role: 'treeitem', tabIndex: -1 }, who, stage);
        element.className = `row ${node.what}`;
        element.dataset.key = node.key;
        element.setAttribute('aria-level', node.level);
        element.style.setProperty('--level', node.level - 1);
        return element;
    }

    update() {
        const { node, element } = this;
        const stages = node.what === 'task' ? PHASES : STATES;
        const at = Math.max(0, stages.indexOf(node.phase));
        const been = new Set(node.spans.map((span) => span.phase));
        const facts = factsOf(node);
        setText(this.name, node.name);
        setText(this.facts, facts.join(' · '));
        setText(this.phase, node.phase);
        setVariable(this.element, '--at', String(at));
        this.stops.forEach((stop, i) => setAttribute(stop, 'class', stopClass(i, at, been.has(stages[i]))));
        setAttribute(element, 'data-name', node.name);
        setAttribute(element, 'data-phase', node.phase);
        setAttribute(element, 'data-status', node.status || undefined);
        setAttribute(element, 'data-masked', node.held || undefined);
        setAttribute(element, 'aria-description', node.what); /* its name is what is to be read in it */
        this.count(node.budget?.from ?? 0);
    }

    /** The budget as time goes by. True as long as it runs down. */
    count(now) {
        const { budget, live } = this.node;
        const runs = live && budget !== undefined;
        const left = runs ? Math.max(0, budget.until - now) : 0;
        setAttribute(this.drain, 'data-runs', runs ? '' : undefined);
        setText(this.budget, runs ? budgetText(left, budget.polls) : '');
        if (runs) setVariable(this.drain, '--left', (left / (budget.until - budget.from)).toFixed(3));
        return runs;
    }
}

function stopClass(i, at, been) {
    if (i === at) return 'here';
    return been && i < at ? 'been' : '';
}

export function budgetText(left, polls) {
    return `${seconds(left)}${polls === Infinity || polls === 0 ? '' : ` · ${polls}`}`;
}

/**
 * The tree as a list of rows of one height, each before what is in it. One row is in the tab order; arrows
 * move. The letters of the verbs work on the row that has the focus.
 */
export class TreeView {
    #element;
    #listener;
    #rows = new Map();
    #counting = new Set();
    #late = new Set(); /* nodes whose rows are not up to date */
    #closed = new Set(); /* keys of regions that are folded */
    shown = []; /* nodes, in the order of their rows */
    scrolled = 0; /* px, in this frame */
    pointed; /* the node that something else points to */
    focusSoon = false; /* the row that had the focus is gone: the next that is selected gets it */
    selected;

    /**
     * @param {{ select: (node) => void, enter: () => void, key: (key: string) => boolean,
     *     point: (node) => void, fold: () => void, clicked: () => void }} listener
     */
    constructor(element, listener) {
        this.#element = element;
        this.#listener = listener;
        element.addEventListener('click', (event) => this.#clicked(event));
        element.addEventListener('keydown', (event) => this.#pressed(event));
        element.addEventListener('focusin', (event) => this.#choose(this.#nodeAt(event.target)));
        element.addEventListener('pointerover', (event) => listener.point(this.#nodeAt(event.target)));
        element.addEventListener('pointerleave', () => listener.point(undefined));
    }

    reset() {
        this.#rows.clear();
        this.#counting.clear();
        this.#late.clear();
        this.#closed.clear();
        this.#element.replaceChildren();
        this.shown = [];
        this.selected = undefined;
    }

    #nodeAt(target) {
        return this.#rows.get(target.closest?.('.row')?.dataset.key)?.node;
    }

    /* ---- drawing --------------------------------------------------------------------------------------- */

    /** Draws what changed: what is seen at once, the rest of it a few rows a frame. True if some are left. */
    render(model, now) {
        const [first, last] = this.#window(); /* before anything is written: else it is laid out twice */
        if (model.reshaped) this.#arrange(model);
        for (const node of model.changed) this.#late.add(node);
        const seen = this.shown.slice(first, last).filter((node) => this.#late.has(node));
        for (const node of [...seen, ...firstOf(this.#late, A_FRAME)]) this.#update(node);
        for (const row of this.#counting) if (!row.count(now)) this.#counting.delete(row);
        return this.#late.size > 0;
    }

    /** Which rows are to be seen. */
    #window() {
        const { scrollTop, clientHeight, firstElementChild } = this.#element;
        const height = firstElementChild?.offsetHeight || 40;
        this.scrolled = scrollTop;
        return [Math.floor(scrollTop / height), Math.ceil((scrollTop + clientHeight) / height) + 1];
    }

    #update(node) {
        this.#late.delete(node);
        const row = this.#rows.get(node.key);
        if (row === undefined) return;
        row.update();
        if (node.budget !== undefined && node.live) this.#counting.add(row);
        this.#twist(row);
    }

    #twist(row) {
        const { node } = row;
        const expanded = node.children.length === 0 ? undefined : !this.#closed.has(node.key);
        setAttribute(row.element, 'aria-expanded', expanded);
    }

    #arrange(model) {
        this.shown = model.order((node) => !this.#closed.has(node.key));
        const wanted = new Set(this.shown.map((node) => node.key));
        for (const [key, row] of this.#rows) if (!wanted.has(key)) this.#remove(key, row);
        let before = this.#element.firstChild;
        for (const node of this.shown) {
            const row = this.#rows.get(node.key) ?? this.#make(node);
            if (row.element === before) before = before.nextSibling;
            else this.#element.insertBefore(row.element, before);
        }
        this.#number();
        if (!wanted.has(this.selected?.key)) this.#choose(this.#shelter(wanted));
    }

    #make(node) {
        const row = new Row(node);
        this.#rows.set(node.key, row);
        this.#update(node);
        return row;
    }

    #remove(key, row) {
        const hadFocus = row.element === document.activeElement;
        this.#rows.delete(key);
        this.#counting.delete(row);
        row.element.remove();
        if (hadFocus) this.focusSoon = true;
    }

    /** Whom to select when the selected one is not shown any more. */
    #shelter(wanted) {
        let node = this.selected;
        while (node !== undefined && !wanted.has(node.key)) node = node.parent;
        return node ?? this.shown[0];
    }

    #number() {
        const places = new Map();
        for (const node of this.shown) {
            const row = this.#rows.get(node.key);
            const place = (places.get(node.parent) ?? 0) + 1;
            places.set(node.parent, place);
            setAttribute(row.element, 'aria-posinset', place);
            setAttribute(row.element, 'aria-setsize', node.parent?.children.length ?? 1);
            this.#twist(row);
        }
    }

    /** Puts a mark on the row of a node that something else on the page points to. */
    point(node) {
        if (this.pointed === node) return;
        this.#rows.get(this.pointed?.key)?.element.classList.remove('pointed');
        this.#rows.get(node?.key)?.element.classList.add('pointed');
        this.pointed = node;
    }

    /* ---- choosing -------------------------------------------------------------------------------------- */

    #choose(node) {
        if (node === undefined || node === this.selected) return;
        const before = this.#rows.get(this.selected?.key)?.element;
        if (before !== undefined) {
            before.tabIndex = -1;
            before.setAttribute('aria-selected', 'false');
        }
        this.selected = node;
        const { element } = this.#rows.get(node.key);
        element.tabIndex = 0;
        element.setAttribute('aria-selected', 'true');
        if (this.focusSoon) this.focus();
        this.#listener.select(node);
    }

    focus() {
        this.focusSoon = false;
        this.#rows.get(this.selected?.key)?.element.focus({ preventScroll: false });
    }

    #clicked(event) {
        const node = this.#nodeAt(event.target);
        if (node === undefined) return;
        if (event.target.closest('.twist') && node.children.length > 0) this.#fold(node);
        this.#choose(node);
        this.focus();
        this.#listener.clicked();
    }

    #fold(node, shut = !this.#closed.has(node.key)) {
        if (shut) this.#closed.add(node.key);
        else this.#closed.delete(node.key);
        this.#listener.fold();
    }

    #pressed(event) {
        if (event.ctrlKey || event.metaKey || event.altKey || this.selected === undefined) return;
        if (this.#moved(event.key) || this.#listener.key(event.key.toLowerCase())) event.preventDefault();
    }

    #moved(key) {
        const at = this.shown.indexOf(this.selected);
        const node = this.selected;
        const to = (index) => this.#go(this.shown[Math.min(this.shown.length - 1, Math.max(0, index))]);
        const moves = {
            ArrowDown: () => to(at + 1),
            ArrowUp: () => to(at - 1),
            Home: () => to(0),
            End: () => to(this.shown.length - 1),
            ArrowRight: () => (this.#isShut(node) ? this.#fold(node, false) : this.#go(node.children[0])),
            ArrowLeft: () => (this.#isOpen(node) ? this.#fold(node, true) : this.#go(node.parent)),
            Enter: () => this.#listener.enter(),
        };
        if (!Object.hasOwn(moves, key)) return false;
        moves[key]();
        return true;
    }

    #isShut(node) {
        return this.#closed.has(node.key);
    }

    #isOpen(node) {
        return node.children.length > 0 && !this.#isShut(node);
    }

    #go(node) {
        if (node === undefined) return;
        this.#choose(node);
        this.focus();
    }
}
