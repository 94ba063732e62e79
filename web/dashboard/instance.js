/* One durable instance: what it is, what may be asked of it, its history as a timeline and as a list, its children. */
import { pathOf } from './api.js';
import { able, h, setAttribute, setText } from './element.js';
import { confirmButton, rowButton, showRows, showState, shownCustom, tableOf, timeOf } from './rows.js';
import { Timeline } from './timeline.js';

const EVERY_MS = 1000;
const TURNS = 500; /* of one page of a history */
const EVENTS = 5000; /* that are read of one history; the rest is counted by nobody */
const LISTED = 200; /* events in the list: the last ones */

const AT = { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 };

/** What an event says, in one line. */
function detailOf({ event }) {
    const { name, step, text, body, key, due, id } = event;
    return [name, id, key, step ? `of #${step}` : '', due ? `due ${timeOf(due)}` : '', text,
        body === undefined || body === null ? '' : JSON.stringify(body).slice(0, 200)].filter(Boolean).join(' ');
}

/** The children of an instance as a tree: each level is asked for when it is opened. */
function childrenOf(id, host) {
    const list = h('ul', { className: 'children' });
    const make = (child) => {
        const below = childrenOf(child.id, host);
        const item = h('details', { ontoggle: () => item.open && below.look() },
            h('summary', {}, h('a', { href: `#/instances/${encodeURIComponent(child.id)}` }, child.id), ' ', h('span', { className: 'cell' })),
            below.list);
        return h('li', {}, item);
    };
    const update = (row, child) => {
        const [summary, below] = row.firstChild.children;
        showState(summary.lastChild, child.state);
        if (row.firstChild.open) below.look?.();
    };
    list.look = async () => {
        const { instances, next } = await host.ask(`${pathOf(id)}/children?most=200`);
        showRows(list, instances, (i) => i.id, make, update);
        setAttribute(list, 'data-more', next === null ? undefined : '');
        return instances.length;
    };
    return { list, look: list.look };
}

class Instance {
    #host;
    #id;
    #timer;
    #asked = 0;
    #events = [];
    #execution;

    constructor(place, host) {
        this.#host = host;
        this.title = h('h3', { id: 'instance-title' });
        this.state = h('span', { id: 'instance-state' });
        this.parent = h('a', { hidden: true });
        this.facts = h('dl', { className: 'facts-list' });
        this.timeline = new Timeline();
        this.status = h('p', { id: 'history-status', className: 'quiet' });
        const { body, scroll } = tableOf('history', ['Event', 'Turn', 'At', 'Kind', 'Detail', '']);
        this.body = body;
        this.children = h('div', { className: 'panel', id: 'children' });
        this.element = h('div', { hidden: true },
            h('p', { className: 'bar' }, h('a', { href: '#/instances' }, 'All instances')),
            h('div', { className: 'panel' }, h('div', { className: 'bar' }, this.title, this.state, this.parent), this.facts, this.#verbs(), this.#signal()),
            h('div', { className: 'panel' }, h('h3', {}, 'Timeline'), this.timeline.element),
            this.children,
            h('div', { className: 'panel' }, h('h3', {}, 'History'), this.status, scroll));
        place.append(this.element);
    }

    /* ---- what may be asked of it ------------------------------------------------------------------------------------- */

    #ask(verb, body) {
        const id = this.#id;
        return this.#host.say(`${verb} of ${id}`, this.#host.change(`${pathOf(id)}/${verb}`, body).then(() => this.#again()));
    }

    #verbs() {
        this.reason = h('input', { name: 'reason', autocomplete: 'off', maxLength: 1024, size: 18 });
        const body = () => (this.reason.value === '' ? {} : { reason: this.reason.value });
        const sure = (text, verb) => confirmButton(text, '', (armed) => (armed ? this.#ask(verb, body()) : `${text}: sure?`));
        this.cancel = rowButton('Cancel', '', () => this.#ask('cancel', body()));
        this.terminate = sure('Terminate', 'terminate');
        this.resume = rowButton('Resume', '', () => this.#ask('resume'));
        return h('div', { className: 'bar', id: 'verbs' }, this.cancel, this.terminate, this.resume, h('label', {}, 'Reason ', this.reason));
    }

    #signal() {
        const name = h('input', { name: 'signal', required: true, autocomplete: 'off', maxLength: 255, size: 14 });
        const body = h('textarea', { name: 'body', rows: 1, cols: 28, spellcheck: false });
        const wrong = h('span', { id: 'signal-wrong', className: 'wrong', role: 'alert' });
        const check = () => {
            const text = body.value.trim();
            try {
                setText(wrong, '');
                setAttribute(body, 'aria-invalid', undefined);
                setAttribute(body, 'aria-describedby', undefined);
                return text === '' ? {} : { body: JSON.parse(text) };
            } catch (error) {
                setText(wrong, `no JSON: ${error.message}`);
                setAttribute(body, 'aria-invalid', 'true');
                setAttribute(body, 'aria-describedby', wrong.id);
                return undefined;
            }
        };
        body.addEventListener('change', check);
        const form = h('form', { className: 'bar', id: 'signal' },
            h('label', {}, 'Signal ', name), h('label', {}, 'JSON ', body), h('button', { type: 'submit' }, 'Send'), wrong);
        form.addEventListener('submit', (event) => {
            event.preventDefault();
            const given = check();
            if (given === undefined) body.focus();
            else this.#ask('signal', { name: name.value, ...given });
        });
        return form;
    }

    /* ---- what is known of it ----------------------------------------------------------------------------------------- */

    start(id) {
        if (id !== this.#id) this.#begin(id);
        this.element.hidden = false;
        this.#again();
    }

    #begin(id) {
        this.#id = id;
        this.#execution = undefined;
        setText(this.title, id);
        this.below = childrenOf(id, this.#host);
        this.children.replaceChildren(h('h3', {}, 'Children'), this.below.list);
        this.children.hidden = true;
        this.#forget();
    }

    #forget() {
        this.#events = [];
        this.body.replaceChildren();
    }

    stop() {
        clearTimeout(this.#timer);
        this.#asked++;
        this.element.hidden = true;
    }

    async #again() {
        clearTimeout(this.#timer);
        const asked = ++this.#asked;
        try {
            const info = await this.#host.ask(pathOf(this.#id));
            if (asked !== this.#asked) return;
            this.#show(info);
            await this.#readHistory(info, asked);
            if (asked === this.#asked) this.children.hidden = await this.below.look() === 0;
        } catch (error) {
            if (asked === this.#asked) this.#host.say(this.#id, Promise.reject(error));
        }
        if (asked === this.#asked) this.#timer = setTimeout(() => this.#again(), EVERY_MS);
    }

    #show(i) {
        const live = i.ended === 0;
        showState(this.state, i.state);
        able(this.cancel, live);
        able(this.terminate, live);
        able(this.resume, i.state === 'Suspended');
        const facts = {
            Orchestration: i.version === 0 ? i.name : `${i.name} ${i.version}`,
            Started: timeOf(i.started), Ended: timeOf(i.ended), Execution: String(i.execution), Turn: String(i.turn),
            Status: i.text || (i.unserved ? 'no live worker can run it' : shownCustom(i.custom)),
            Input: JSON.stringify(i.input), Output: i.output === null ? '' : JSON.stringify(i.output),
        };
        const pairs = Object.entries(facts).filter(([, value]) => value !== '');
        showRows(this.facts, pairs, ([name]) => name, ([name]) => h('div', {}, h('dt', {}, name), h('dd')),
            (pair, [, value]) => setText(pair.lastChild, value));
        this.parent.hidden = i.parent === '';
        this.parent.href = `#/instances/${encodeURIComponent(i.parent)}`;
        setText(this.parent, `child of ${i.parent}`);
    }

    async #readHistory(info, asked) {
        const execution = `${this.#id} ${info.execution}`;
        if (execution !== this.#execution || (this.#events.at(-1)?.turn ?? 0) > info.turn) this.#forget();
        this.#execution = execution;
        let next = this.#events.at(-1)?.turn ?? 0;
        while (next !== null && this.#events.length < EVENTS) {
            const page = await this.#host.ask(`${pathOf(this.#id)}/history?most=${TURNS}&after=${next}`);
            if (asked !== this.#asked) return;
            this.#events.push(...page.events);
            next = page.next;
        }
        this.timeline.show(this.#events, info);
        this.#list();
    }

    #list() {
        const last = this.#events.slice(-LISTED);
        showRows(this.body, last, (e) => String(e.number), (e) => this.#row(e), () => {});
        setText(this.status, this.#events.length > LISTED ? `the last ${LISTED} of ${this.#events.length} events` : '');
    }

    #row(e) {
        const reset = confirmButton('Reset', `to event ${e.number}`, (armed) => (armed ? this.#ask('reset', { event: e.number }) : `Reset to ${e.number}: sure?`));
        const cells = [String(e.turn), new Date(e.at / 1e6).toLocaleTimeString('sv', AT), e.kind, detailOf(e)];
        return h('tr', {}, h('th', { scope: 'row' }, String(e.number)), ...cells.map((text) => h('td', {}, text)), h('td', {}, reset));
    }
}

export function instance(place, host) {
    return new Instance(place, host);
}
