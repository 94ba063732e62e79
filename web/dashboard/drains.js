/* Workflows as cards: what they do, a drain's budget running down between two events too, who holds it up, and the
 * operator's calls. What a workflow waits for stays up to date as long as it is open. */
import { able, h, setAttribute, setText, setVariable } from './element.js';
import { age, confirmButton, rowButton, showRows, showState } from './rows.js';

const EXTEND_MS = 5000;
const ENDED = ['FINALIZED', 'LEAK_DETECTED'];
const FORCED = ['DRAINING', 'FINALIZING']; /* in other states the service refuses it */
const drains = (w) => w.request !== undefined && !ENDED.includes(w.state);
const titleOf = (w) => `${w.type}#${w.number}${w.name === '' ? '' : ` ${w.name}`}`;

/** The last lines of a workflow's audit log. */
async function lastLines(ask, path) {
    let page = { next: undefined }, lines = [];
    while (page.next !== null) {
        page = await ask(`${path}/audit?most=200${page.next === undefined ? '' : `&after=${page.next}`}`);
        lines = [...lines, ...page.lines].slice(-200);
    }
    return lines.map((l) => [l.at, l.event, l.code ?? '', `${l.from} -> ${l.to}`, JSON.stringify(l.evidence)].join('  ')).join('\n');
}

export class Drains {
    #host;
    #cards = new Map(); /* by id: what was told last, and when */
    #frame;

    constructor(host) {
        this.#host = host;
        this.element = h('ul', { id: 'drains' });
    }

    show(workflows, now) {
        for (const w of workflows) this.#cards.set(w.workflow, { w, now });
        showRows(this.element, workflows, (w) => w.workflow, (w) => this.#make(w), (card, w) => this.#update(card, w));
        if (this.#cards.size > workflows.length)
            for (const id of this.#cards.keys()) if (!workflows.some((w) => w.workflow === id)) this.#cards.delete(id);
        this.#run();
    }

    #make(w) {
        const { say, change } = this.#host;
        const path = `api/v1/workflows/${w.workflow}`;
        const title = titleOf(w);
        const verb = (name, does) => confirmButton(name, title, (armed) => (armed ? does() : `${name}: sure?`));
        const explained = h('pre', { hidden: true, tabIndex: 0, role: 'group', ariaLabel: `What ${title} waits for` });
        const explain = rowButton('Explain', title, () => {
            explained.hidden = !explained.hidden;
            setAttribute(explain, 'aria-expanded', !explained.hidden);
            if (!explained.hidden) say(`explain ${title}`, this.#explain(path, explained).then(() => explained.focus()));
        });
        setAttribute(explain, 'aria-expanded', false);
        const logged = h('pre', { hidden: true, tabIndex: 0, role: 'group', ariaLabel: `The log of ${title}` });
        const log = rowButton('Log', title, () => {
            logged.hidden = !logged.hidden;
            setAttribute(log, 'aria-expanded', !logged.hidden);
            if (!logged.hidden)
                say(`log of ${title}`, lastLines(this.#host.ask, path).then((text) => { setText(logged, text); logged.focus(); }));
        });
        setAttribute(log, 'aria-expanded', false);
        const bar = h('span', { className: 'budget', role: 'progressbar', ariaLabel: `budget of ${title}`, 'aria-valuemin': '0', 'aria-valuemax': '100' });
        return h('li', {},
            h('div', { className: 'what' }, h('b', {}, title), ' ', h('span', { className: 'cell' })),
            h('div', { className: 'time' }, bar, h('span', { className: 'quiet' })),
            h('div', { className: 'held quiet' }),
            h('div', { className: 'acts' }, explain,
                verb('Stop', () => say(`request to ${title}`, change(`${path}/request`))),
                rowButton('Extend 5 s', title, () => say(`5 s more for ${title}`, change(`${path}/extend`, { ms: EXTEND_MS }))),
                verb('Force', () => say(`force of ${title}`, change(`${path}/force`))), log),
            explained, logged);
    }

    async #explain(path, explained) {
        const { explain: lines, explain_cut: cut } = await this.#host.ask(path);
        setText(explained, lines.join('\n') + (cut ? '\n...' : ''));
    }

    #update(card, w) {
        const [what, , held, , explained] = card.children;
        const [, stop, extend, force] = card.children[3].children;
        const waits = !drains(w) ? '' : w.handlers.filter((d) => !d.ended).map((d) => `${d.name} ${d.done}/${d.total}`).join(', ');
        const flight = w.in_flight === undefined ? '' : `${w.in_flight} in flight`;
        showState(what.lastChild, w.state);
        setText(held, [flight, waits && `held by ${waits}`, w.leaks > 0 && `${w.leaks} leaked`, w.message && `"${w.message}"`]
            .filter(Boolean).join(' · '));
        able(stop, w.request === undefined);
        able(extend, w.state === 'DRAINING');
        able(force, FORCED.includes(w.state));
        if (!explained.hidden) this.#explain(`api/v1/workflows/${w.workflow}`, explained).catch(() => {});
        this.#count(card, w, w.elapsed_ms ?? 0);
    }

    #count(card, w, elapsed) {
        const [bar, text] = card.children[1].children;
        const left = Math.max(0, 1 - elapsed / w.budget_ms);
        setVariable(bar, '--left', left.toFixed(3));
        setAttribute(bar, 'aria-valuenow', Math.round(100 * left));
        setAttribute(bar, 'data-runs', drains(w) ? '' : undefined);
        setText(text, w.request === undefined ? `${age(w.budget_ms)} to stop`
            : !drains(w) ? `took ${age(elapsed)} of ${age(w.budget_ms)}`
            : elapsed > w.budget_ms ? `${age(elapsed - w.budget_ms)} over its ${age(w.budget_ms)}`
                : `${age(w.budget_ms - elapsed)} of ${age(w.budget_ms)} left`);
    }

    /** Budgets run down while nobody tells. */
    #run() {
        if (this.#frame !== undefined || ![...this.#cards.values()].some(({ w }) => drains(w))) return;
        this.#frame = setTimeout(() => {
            this.#frame = undefined;
            for (const card of this.element.children) {
                const { w, now } = this.#cards.get(card.dataset.key) ?? {};
                if (w !== undefined && drains(w)) this.#count(card, w, Math.round(w.elapsed_ms + performance.now() - now));
            }
            this.#run();
        }, 100);
    }
}
