/* Workflows: what they do, a drain's budget running down, and the operator's calls. */
import { ask, change } from './api.js';
import { h, setText } from './element.js';
import { age, emptyRow, rowButton, showRows, showState } from './rows.js';

const EXTEND_MS = 5000;
const titleOf = (w) => `${w.type}#${w.number}${w.name === '' ? '' : ` ${w.name}`}`;

async function explain(path, explained) {
    const { explain: lines, explain_cut: cut } = await ask(path);
    explained.hidden = false;
    setText(explained, lines.join('\n') + (cut ? '\n...' : ''));
    explained.focus();
}

/** The last lines of its audit log. */
async function log(path, explained) {
    let page = { lines: [], next: undefined }, lines = [];
    while (page.next !== null) {
        page = await ask(`${path}/audit?most=200${page.next === undefined ? '' : `&after=${page.next}`}`);
        lines = [...lines, ...page.lines].slice(-200);
    }
    explained.hidden = false;
    setText(explained, lines.map((l) => [l.at, l.event, l.code ?? '', `${l.from} -> ${l.to}`,
        JSON.stringify(l.evidence)].join('  ')).join('\n'));
    explained.focus();
}

function make(w, explained, say) {
    const row = emptyRow(5);
    const path = `api/v1/workflows/${w.workflow}`;
    const title = titleOf(w);
    row.cells[2].append(h('progress', { max: 1, value: 0, ariaLabel: `budget of ${title}` }), h('span'));
    row.cells[5].append(
        rowButton('Explain', title, () => say(`explain ${title}`, explain(path, explained))), ' ',
        rowButton('Stop', title, () => say(`request to ${title}`, change(`${path}/request`))), ' ',
        rowButton('Extend', title, () => say(`5 s more for ${title}`, change(`${path}/extend`, { ms: EXTEND_MS }))), ' ',
        rowButton('Force', title, () => say(`force of ${title}`, change(`${path}/force`))), ' ',
        rowButton('Log', title, () => say(`log of ${title}`, log(path, explained))),
    );
    return row;
}

function update(row, w) {
    const [title, state, budget, inFlight, held] = row.cells;
    const [bar, text] = budget.children;
    const elapsed = w.elapsed_ms ?? 0;
    setText(title, titleOf(w));
    showState(state, w.state);
    bar.value = Math.min(1, elapsed / w.budget_ms);
    setText(text, w.request === undefined ? ` ${age(w.budget_ms)}` : ` ${age(elapsed)} of ${age(w.budget_ms)}`);
    setText(inFlight, String(w.in_flight ?? ''));
    setText(held, w.handlers.filter((d) => !d.ended).map((d) => `${d.name} ${d.done}/${d.total}`).join(', '));
}

export function showDrains(table, explained, loop, say) {
    showRows(table, loop.workflows, (w) => w.workflow, (w) => make(w, explained, say), update);
}
