import { able, count, h, setAttribute, setText, setVariable } from './element.js';
import { KINDS } from './kinds.js';
import { budgetText } from './tree.js';
import { REASONS, VERBS } from './verbs.js';
import { WORDS } from './words.js';

const FACTS = ['phase', 'reason', 'lane', 'message', 'mask', 'holds', 'epoch', 'budget']; /* in two columns */

/**
 * All that is known of the selected node, and its buttons. It has the same size for a task and for a region,
 * so that nothing moves when another row is selected.
 */
export class Inspector {
    #node;
    #listener;
    #buttons = new Map();
    #facts = new Map();
    #title = h('h2');
    #where = h('span', { className: 'quiet' });
    #hint = h('span', { id: 'hint', className: 'hint' });
    #bar = h('span', { className: 'drain wide' });

    /** @param {{ verb: (name: string) => void, key: (key: string) => boolean, leave: () => void,
     *     changed: () => void }} listener */
    constructor(element, listener) {
        this.#listener = listener;
        const kinds = Object.entries(KINDS).map(([key, kind]) => [key, kind.label]);
        this.kind = choice('choose-task', 'kind of task', { '': kinds });
        this.kind.setAttribute('aria-describedby', this.#hint.id);
        this.kind.addEventListener('change', () => this.#describe());
        this.#describe();
        this.times = choice('choose-times', 'how many', { '': ['1', '10', '50'].map((n) => [n, `× ${n}`]) });
        this.reason = choice('choose-cancel', 'kind of cancel', REASONS);
        this.checks = h('input', { type: 'checkbox', id: 'checks' });
        this.checks.addEventListener('change', () => this.#setChecks());
        element.append(this.#head(), this.#list(), this.#bar, this.#region(), this.#task(), this.#both());
        element.addEventListener('keydown', (event) => this.#pressed(event));
        this.element = element;
    }

    #pressed(event) {
        if (event.key === 'Escape') this.#listener.leave();
        else if (event.target.tagName === 'BUTTON' && !event.ctrlKey && !event.metaKey && !event.altKey) {
            this.#listener.key(event.key.toLowerCase());
        }
    }

    /** What is chosen for the verbs. */
    options() {
        return { kind: this.kind.value, times: Number(this.times.value), reason: this.reason.value };
    }

    focus() {
        const all = [...this.element.querySelectorAll('button, select, input')];
        all.find((control) => control.offsetParent !== null)?.focus();
    }

    /** On a small page it stands below the tree. */
    reveal(calm) {
        this.element.scrollIntoView({ block: 'nearest', behavior: calm ? 'auto' : 'smooth' });
    }

    #head() {
        return h('div', { className: 'bar' }, this.#title, this.#where);
    }

    #list() {
        const list = h('dl', { className: 'facts-list' });
        for (const name of FACTS) {
            const value = h('dd', {}, '–');
            this.#facts.set(name, value);
            list.append(h('div', {}, h('dt', { title: WORDS[name] ?? '' }, name), value));
        }
        return list;
    }

    #button(name) {
        const { label, key, hint } = VERBS[name];
        const button = h('button', { type: 'button', id: `do-${name}` }, label);
        button.setAttribute('aria-keyshortcuts', key.toUpperCase());
        if (hint !== undefined) button.title = hint;
        button.addEventListener('click', () => this.#listener.verb(name));
        this.#buttons.set(name, button);
        return button;
    }

    #group(label, className, ...children) {
        const properties = { role: 'group', className: `buttons ${className}`, 'aria-label': label };
        return h('div', properties, ...children);
    }

    #region() {
        return this.#group('In this region', 'of-region', this.kind, this.times, this.#button('spawn'),
            this.#button('region'), this.#hint);
    }

    #describe() {
        setText(this.#hint, KINDS[this.kind.value].hint);
    }

    #task() {
        const checks = h('label', { className: 'check', htmlFor: 'checks' }, this.checks, 'checks often');
        const verbs = ['mask', 'unmask', 'hold', 'commit'].map((name) => this.#button(name));
        return this.#group('This task', 'of-task', ...verbs,
            h('span', { className: 'pair' }, checks, this.#button('checkpoint')));
    }

    #both() {
        const verbs = ['cancel', 'force', 'close'].map((name) => this.#button(name));
        return this.#group('End it', 'of-both', this.reason, ...verbs);
    }

    #setChecks() {
        if (this.#node?.desk !== undefined) this.#node.desk.checks = this.checks.checked;
        this.#listener.changed();
    }

    /* ---- drawing --------------------------------------------------------------------------------------- */

    show(node) {
        this.#node = node;
        this.checks.checked = node?.desk?.checks ?? true;
        setAttribute(this.element, 'data-what', node?.what);
    }

    /** Only what is new is written. `gone`: there is nobody any more who could do something. */
    render(now, gone) {
        const node = this.#node;
        if (node === undefined) return;
        setText(this.#title, node.name);
        setText(this.#where, whereOf(node));
        setAttribute(this.element, 'data-phase', node.phase);
        const values = valuesOf(node, now);
        for (const name of FACTS) setText(this.#facts.get(name), values[name] ?? '–');
        this.#budget(node, now);
        for (const [name, button] of this.#buttons) able(button, !gone && canDo(VERBS[name], node));
    }

    #budget({ budget, live }, now) {
        const runs = budget !== undefined && live;
        setAttribute(this.#bar, 'data-runs', runs ? '' : undefined);
        if (!runs) return;
        const left = Math.max(0, budget.until - now) / (budget.until - budget.from);
        setVariable(this.#bar, '--left', left.toFixed(3));
    }
}

function canDo(verb, node) {
    return verb.can === undefined || (node.handle !== undefined && verb.can(node));
}

function whereOf(node) {
    return node.parent === undefined ? 'the root region' : `${node.what} in ${node.parent.name}`;
}

function valuesOf(node, now) {
    const { reason, budget, live } = node;
    return {
        phase: node.status && !live ? `${node.phase}, ${node.status}` : node.phase,
        lane: node.what === 'task' && live ? laneOf(node) : undefined,
        mask: node.what === 'task' ? String(node.mask) : undefined,
        epoch: String(node.epoch),
        reason: reason && `${reason.kind}, ${reason.severity}`,
        message: reason?.message || causeOf(node),
        holds: node.what === 'region' && node.counts ? countsOf(node) : holdsOf(node),
        budget: budget && live ? budgetText(budget.until - now, budget.polls) + pollsWord(budget) : undefined,
    };
}

/** Of one that was cancelled with PARENT: what began it. */
function causeOf(node) {
    const cause = node.reason?.kind === 'PARENT' ? node.cause ?? node.parent?.cause : undefined;
    return cause && `${cause.kind}: ${cause.message}`;
}

function laneOf(node) {
    if (node.lane !== 'none') return node.lane;
    return node.ranIn ? `parked, was ${node.ranIn}` : 'parked';
}

function countsOf({ counts }) {
    const owed = counts.obligations > 0 ? `, ${counts.obligations} owed` : '';
    return `${count(counts.tasks, 'task')}, ${count(counts.children, 'region')}${owed}`;
}

function holdsOf(node) {
    const n = node.desk?.leases.length ?? 0;
    return node.live && n > 0 ? count(n, 'lease') : undefined;
}

function pollsWord({ polls }) {
    return polls === Infinity || polls === 0 ? '' : ' polls';
}

/** A select; groups with a name are optgroups. */
function choice(id, label, groups) {
    const select = h('select', { id, 'aria-label': label });
    for (const [name, items] of Object.entries(groups)) {
        const options = items.map(([value, text = value]) => new Option(text, value));
        if (name === '') select.append(...options);
        else select.append(h('optgroup', { label: name }, ...options));
    }
    return select;
}
