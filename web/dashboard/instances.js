/*
 * Durable instances: a page of those that match a filter, selected ones or all of them cancelled. The filter is part of the
 * address, so that a list can be linked to: #/instances; one of them has a view of its own, instance.js.
 */
import { pathOf } from './api.js';
import { h, setText } from './element.js';
import { instance } from './instance.js';
import { confirmButton, disarm, rowButton, showRows, showState, shownCustom, tableOf, timeOf } from './rows.js';

const EVERY_MS = 1000;
const PAGE = 50;
const TOGETHER = 8; /* requests at a time for those that are selected */
const STATES = ['Running', 'Suspended', 'Completed', 'Failed', 'Cancelled', 'Terminated'];
const LIVE = ['Running', 'Suspended'];


function filterForm() {
    const field = (label, name, type = 'text') => h('label', {}, label, ' ',
        h('input', { name, type, autocomplete: 'off', spellcheck: false, maxLength: 255, size: 12 }));
    return h('form', { id: 'filter' },
        field('Id begins with', 'prefix'), field('Name', 'name'), field('Parent', 'parent'),
        h('label', {}, 'State ', h('select', { name: 'state' }, h('option', { value: '' }, 'any'),
            ...STATES.map((s) => h('option', {}, s)))),
        field('Started after', 'started_after', 'datetime-local'), field('Ended before', 'ended_before', 'datetime-local'),
        h('button', { type: 'submit' }, 'Filter'));
}

/** What the form says, without what is left empty. Times are those of the service: nanoseconds. */
function filterOf(form) {
    const given = [...new FormData(form)].filter(([, value]) => value !== '');
    return Object.fromEntries(given.map(([name, value]) =>
        (name.endsWith('after') || name.endsWith('before') ? [name, Date.parse(value) * 1e6] : [name, value])));
}

class List {
    #host;
    #selected = new Set();
    #pages = [undefined]; /* the `after` of each page so far, the last is that which is shown */
    #next = null;
    #timer;
    #asked = 0;

    constructor(place, host) {
        this.#host = host;
        this.form = filterForm();
        this.all = confirmButton('Cancel all that match', '', (armed) => this.#cancelAll(armed));
        this.all.id = 'cancel-all';
        this.chosen = confirmButton('Cancel selected', '', (armed) => this.#cancelSelected(armed));
        this.chosen.id = 'cancel-selected';
        this.progress = h('progress', { hidden: true, ariaLabel: 'instances cancelled' });
        this.every = h('input', { type: 'checkbox', ariaLabel: 'select all on this page', onchange: () => this.#selectAll() });
        const { table, body, scroll } = tableOf('instances', ['', 'Id', 'Orchestration', 'State', 'Status', 'Started', '']);
        table.tHead.rows[0].cells[0].replaceChildren(this.every);
        this.body = body;
        this.back = rowButton('Previous', 'page', () => this.#turn(-1));
        this.on = rowButton('Next', 'page', () => this.#turn(1));
        this.back.id = 'instances-back';
        this.on.id = 'instances-next';
        this.where = h('span', { className: 'quiet' });
        this.element = h('div', { className: 'panel' }, h('h3', {}, 'Instances'), this.form,
            h('div', { className: 'bar' }, this.chosen, this.all, this.progress), scroll,
            h('div', { className: 'bar' }, this.back, this.on, this.where));
        place.append(this.element);
        this.form.addEventListener('submit', (event) => {
            event.preventDefault();
            this.#restart();
        });
        this.form.addEventListener('input', () => disarm(this.all));
    }

    start() {
        this.element.hidden = false;
        this.#again();
    }

    stop() {
        clearTimeout(this.#timer);
        this.#asked++;
        this.element.hidden = true;
    }

    #restart() {
        disarm(this.all);
        this.#pages = [undefined];
        this.#next = null; /* it was of another filter */
        this.#selected.clear();
        this.#again();
    }

    #turn(by) {
        if (by < 0 && this.#pages.length > 1) this.#pages.pop();
        if (by > 0 && this.#next !== null) this.#pages.push(this.#next);
        this.#again();
    }

    /** Asks for the page now, and again every second for as long as it is looked at. */
    async #again() {
        clearTimeout(this.#timer);
        const asked = ++this.#asked;
        const after = this.#pages.at(-1);
        const query = new URLSearchParams({ most: PAGE, ...filterOf(this.form), ...(after === undefined ? {} : { after }) });
        try {
            const page = await this.#host.ask(`api/v1/instances?${query}`);
            if (asked === this.#asked) this.#show(page);
        } catch (error) {
            if (asked === this.#asked) this.#host.say('instances', Promise.reject(error));
        }
        if (asked === this.#asked) this.#timer = setTimeout(() => this.#again(), EVERY_MS);
    }

    #show({ instances, next }) {
        this.#next = next;
        showRows(this.body, instances, (i) => i.id, (i) => this.#make(i), (row, i) => this.#update(row, i));
        this.back.hidden = this.#pages.length === 1;
        this.on.hidden = next === null;
        setText(this.where, instances.length === 0 ? 'None match.' : `Page ${this.#pages.length}, ${instances.length} instances`);
        this.#tally();
    }

    #make(i) {
        const row = h('tr', {}, h('td'), h('th', { scope: 'row' }), ...Array.from({ length: 5 }, () => h('td')));
        const pick = h('input', { type: 'checkbox', ariaLabel: `select ${i.id}` });
        pick.addEventListener('change', () => {
            if (pick.checked) this.#selected.add(i.id);
            else this.#selected.delete(i.id);
            disarm(this.chosen);
            this.#tally();
        });
        row.cells[0].append(pick);
        row.cells[1].append(h('a', { href: `#/instances/${encodeURIComponent(i.id)}` }, i.id));
        row.cells[6].append(rowButton('Cancel', i.id, () => this.#host.say(`cancel of ${i.id}`, this.#host.change(`${pathOf(i.id)}/cancel`))));
        return row;
    }

    #update(row, i) {
        const [pick, , name, state, status, started, act] = row.cells;
        const live = LIVE.includes(i.state);
        if (!live) this.#selected.delete(i.id);
        pick.firstChild.checked = this.#selected.has(i.id);
        pick.firstChild.hidden = !live;
        setText(name, i.version === 0 ? i.name : `${i.name} ${i.version}`);
        showState(state, i.state);
        setText(status, i.text || (i.unserved ? 'no live worker can run it' : shownCustom(i.custom)));
        setText(started, timeOf(i.started));
        act.firstElementChild.hidden = !live;
    }

    #selectAll() {
        for (const pick of this.body.querySelectorAll('input:not([hidden])')) {
            if (pick.checked !== this.every.checked) pick.click();
        }
    }

    #tally() {
        const n = this.#selected.size;
        this.chosen.hidden = n === 0;
        if (this.chosen.dataset.armed === undefined) this.chosen.firstChild.textContent = this.chosen.label = `Cancel ${n} selected`;
    }

    async #cancelSelected(armed) {
        if (!armed) return `Cancel ${this.#selected.size}: sure?`;
        const ids = [...this.#selected];
        await this.#host.say('cancel of those selected', this.#cancelEach(ids));
        this.#selected.clear();
        this.#again();
        return undefined;
    }

    /** A few at a time, with a bar. What fails does not hold up the others. */
    async #cancelEach(ids) {
        const failed = [];
        let done = 0;
        Object.assign(this.progress, { max: ids.length, value: 0, hidden: false });
        const one = async (id) => {
            await this.#host.change(`${pathOf(id)}/cancel`).catch((error) => failed.push(`${id}: ${error.message}`));
            this.progress.value = ++done;
        };
        for (let i = 0; i < ids.length; i += TOGETHER) await Promise.all(ids.slice(i, i + TOGETHER).map(one));
        this.progress.hidden = true;
        if (failed.length > 0) throw new Error(`${failed.length} of ${ids.length} failed, ${failed[0]}`);
        return `${ids.length} are asked to cancel`;
    }

    /** Says first how many that would be; then how many have ended. */
    async #cancelAll(armed) {
        const of = filterOf(this.form);
        const body = Object.keys(of).length === 0 ? { all: true } : of;
        if (!armed) {
            let n;
            await this.#host.say('count of all that match', this.#host.change('api/v1/cancel', { ...body, dry_run: true }).then(({ cancelled }) => {
                n = cancelled;
                return `${n} match`;
            }));
            return n === undefined ? undefined : `Cancel ${n} instances: sure?`;
        }
        await this.#host.say('cancel of all that match', this.#watchCancel(body));
        this.#again();
        return undefined;
    }

    /** The service cancels page by page; meanwhile those that still run are counted. */
    async #watchCancel(body) {
        const left = async () => {
            const still = { ...body, dry_run: true };
            return (await this.#host.change('api/v1/cancel', still)).cancelled;
        };
        const all = await left();
        let over = false;
        Object.assign(this.progress, { max: Math.max(1, all), value: 0, hidden: false });
        const watch = (async () => {
            while (!over) {
                await new Promise((resolve) => {
                    setTimeout(resolve, EVERY_MS / 2);
                });
                if (!over) this.progress.value = all - await left().catch(() => all);
            }
        })();
        try {
            const { cancelled } = await this.#host.change('api/v1/cancel', body);
            return `${cancelled} are asked to cancel`;
        } finally {
            over = true;
            await watch;
            this.progress.hidden = true;
        }
    }
}

/** The list, or one of it: #/instances/order-7. */
export function instances(place, host) {
    const list = new List(place, host);
    const one = instance(place, host);
    return {
        shown: ([id]) => {
            if (id === undefined) one.stop();
            else list.stop();
            if (id === undefined) list.start();
            else one.start(id);
        },
        hidden: () => {
            list.stop();
            one.stop();
        },
    };
}

