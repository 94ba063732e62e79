/* Machines: a table of those that a filter leaves, with how full their mailboxes are; and one of them with its states as a
 * picture, its queue, and what it waits for. It asks once a second while it is looked at. */
import { Diagram } from './diagram.js';
import { h, setAttribute, setText } from './element.js';
import { age, emptyRow, rowButton, showState } from './rows.js';

const EVERY_MS = 1000;
const MOST = 100;
const PHASES = { Created: 'Finalizing', Running: 'Running', Faulted: 'CancelRequested' };
const ENDED = ['stopped', 'gone']; /* what the service says of one that was there */

/** The style is the module's own: a page without machines does not ask for it. */
function bringStyle() {
    if (document.querySelector('#machines-style') !== null) return;
    document.head.append(h('link', { id: 'machines-style', rel: 'stylesheet', href: 'assets/machines.css' }));
}

const titleOf = (m) => `${m.type} ${m.id}`;
const pathOf = (m) => `api/v1/machines/${encodeURIComponent(m.id)}`;

function field(name, text) {
    const input = h('input', { name, autocomplete: 'off', spellcheck: false, maxLength: 255 });
    return h('label', {}, `${text} `, input);
}

/* ---- one ------------------------------------------------------------------------------------------------------------ */

class MachineView {
    #host;
    #types = new Map(); /* by program and name */
    #diagram;
    #shown; /* what was shown last */

    constructor(host, close) {
        this.#host = host;
        this.title = h('h3', { id: 'machine-title', tabIndex: -1 });
        this.status = h('p', { id: 'machine-state', role: 'status' });
        this.picture = h('div', { className: 'scroll picture', tabIndex: 0, role: 'group', ariaLabel: 'state diagram' });
        this.queue = h('ol', { id: 'machine-queue' });
        this.explain = h('pre', { id: 'machine-explain', tabIndex: 0, ariaLabel: 'what the machine waits for' });
        this.fields = h('pre', { id: 'machine-fields', tabIndex: 0, ariaLabel: 'fields of the machine' });
        this.element = h('section', { id: 'machine', className: 'panel', hidden: true, 'aria-labelledby': 'machine-title' },
            h('header', {}, this.title, h('button', { type: 'button', id: 'machine-close', onclick: close }, 'Close')),
            this.status, this.picture,
            h('h4', {}, 'Mailbox'), this.queue, h('h4', {}, 'Waits for'), this.explain, h('h4', {}, 'Fields'), this.fields);
    }

    async #typeOf(m) {
        const key = JSON.stringify([m.program, m.type]);
        if (!this.#types.has(key)) {
            const query = m.program === '' ? '' : `?${new URLSearchParams({ program: m.program })}`;
            this.#types.set(key, await this.#host.ask(`api/v1/machines/types/${encodeURIComponent(m.type)}${query}`));
        }
        return this.#types.get(key);
    }

    async show(id) {
        const m = await this.#host.ask(pathOf({ id }));
        const same = this.#shown?.id === m.id;
        if (!same) {
            this.#diagram = new Diagram(await this.#typeOf(m));
            this.picture.replaceChildren(this.#diagram.element);
            setText(this.title, titleOf(m));
        }
        this.#diagram.show(m.state, same ? this.#shown.state : undefined);
        this.#say(m);
        this.#shown = m;
        this.element.hidden = false;
        return same;
    }

    #say(m) {
        const fault = m.fault === null ? '' : `. ${m.fault.message}${m.fault.where === '' ? '' : `, at ${m.fault.where}`}`;
        setText(this.status, `${m.lifecycle}, in ${m.state}${fault}`);
        const items = m.queue.map((x) => `${x.what} ${x.kind}${x.from === null ? '' : ` from ${x.from}`}${x.deferred ? ', deferred' : ''}`);
        if (m.queued > items.length) items.push(`and ${m.queued - items.length} more`);
        if (items.length === 0) items.push('nothing');
        if (JSON.stringify(items) !== this.queue.dataset.items) {
            this.queue.replaceChildren(...items.map((text) => h('li', {}, text)));
            this.queue.dataset.items = JSON.stringify(items);
        }
        setText(this.explain, m.explain.join('\n'));
        setText(this.fields, m.fields === null ? (m.fields_cut ? 'too large to be shown' : 'not known: it is a machine in C')
            : JSON.stringify(m.fields, null, 2));
    }

    close() {
        this.#shown = undefined;
        this.element.hidden = true;
    }
}

/* ---- the table ------------------------------------------------------------------------------------------------------ */

function makeRow(m, host, open) {
    const row = emptyRow(6);
    const title = titleOf(m);
    row.cells[0].append(h('button', { type: 'button', className: 'open', onclick: () => open(m.id) }, title));
    row.cells[3].append(h('meter', { min: 0, low: 0, ariaLabel: `mailbox of ${title}` }), h('span'));
    const stop = () => host.say(`stop of ${title}`, host.change(`${pathOf(m)}/stop`));
    row.cells[6].append(rowButton('Stop', title, stop));
    return row;
}

function updateRow(row, m) {
    const [, program, state, mailbox, went, old] = row.cells;
    const [meter, text] = mailbox.children;
    setText(program, m.program);
    showState(state, m.lifecycle === 'Running' ? m.state : `${m.state}, ${m.lifecycle}`);
    state.firstElementChild.dataset.phase = PHASES[m.lifecycle];
    setAttribute(meter, 'max', m.mailbox);
    setAttribute(meter, 'high', m.mailbox * 0.8);
    setAttribute(meter, 'value', Math.min(m.places, m.mailbox));
    setText(text, ` ${m.places} of ${m.mailbox}`);
    const notes = [m.faults > 0 && `${m.faults} faults`, m.dropped > 0 && `${m.dropped} dropped`, m.pending > 0 && `waits for ${m.pending}`];
    setText(went, notes.filter(Boolean).join(', '));
    setText(old, age(m.age_ms));
}

/** A row that stays keeps its elements, and with them the focus. */
function showRows(body, machines, make) {
    const before = new Map(Array.from(body.rows, (row) => [row.dataset.key, row]));
    const rows = machines.map((m) => {
        const row = before.get(m.id) ?? make(m);
        row.dataset.key = m.id;
        updateRow(row, m);
        before.delete(m.id);
        return row;
    });
    for (const row of before.values()) row.remove();
    rows.forEach((row, i) => {
        if (body.rows[i] !== row) body.insertBefore(row, body.rows[i] ?? null);
    });
}

/* ---- the view ------------------------------------------------------------------------------------------------------- */

/** `host` has `say`, `ask` and `change`. Returns what the page tells the view: shown(rest), hidden(). */
export function machines(place, host) {
    const heading = (text) => h('th', { scope: 'col' }, text === '' ? h('span', { className: 'unseen' }, 'Actions') : text);
    const headings = ['Machine', 'Program', 'State', 'Mailbox', 'Notes', 'Age', ''].map(heading);
    const table = h('table', { id: 'machines' }, h('thead', {}, h('tr', {}, ...headings)), h('tbody'));
    const form = h('form', { id: 'machines-filter' }, field('program', 'Program'), field('type', 'Type'), field('state', 'State'),
        h('button', { type: 'submit' }, 'Filter'));
    const more = h('p', { id: 'machines-more', className: 'quiet' });
    let opened;
    let timer;
    const one = new MachineView(host, () => close());

    function close() {
        opened = undefined;
        one.close();
        table.querySelector('button.open')?.focus();
    }

    async function showOpened() {
        if (opened === undefined) return;
        const id = opened;
        try {
            const same = await one.show(id);
            if (!same && id === opened) one.title.focus();
        } catch (error) {
            if (id !== opened) return;
            opened = undefined;
            const stopped = ENDED.includes(error.code);
            setText(one.status, stopped ? 'It has stopped.' : error.message);
            if (!stopped) host.say(`machine ${id}`, Promise.reject(error));
        }
    }

    function open(id) {
        opened = id;
        showOpened();
    }

    async function showTable() {
        const given = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ''));
        const page = await host.ask(`api/v1/machines?${new URLSearchParams({ most: MOST, ...given })}`);
        showRows(table.tBodies[0], page.machines, (m) => makeRow(m, host, open));
        setText(more, page.next !== null ? 'There are more: filter them.' : page.machines.length === 0 ? 'No machine lives here.' : '');
    }

    /* The page says itself that its service is gone. */
    async function again() {
        clearTimeout(timer);
        if (document.visibilityState === 'visible') await Promise.allSettled([showTable(), showOpened()]);
        clearTimeout(timer);
        timer = setTimeout(again, EVERY_MS);
    }

    bringStyle();
    form.addEventListener('submit', (event) => {
        event.preventDefault();
        again();
    });
    place.append(h('div', { className: 'panel' }, h('h3', {}, 'Machines'), form,
        h('div', { className: 'scroll', tabIndex: 0, role: 'group', ariaLabel: 'table of machines' }, table), more), one.element);
    return {
        shown([id] = []) {
            if (id !== undefined) opened = id;
            again();
        },
        hidden: () => clearTimeout(timer),
    };
}
