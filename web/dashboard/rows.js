/* Tables whose rows have keys: a row that stays keeps its elements, and with them the focus. */
import { h, setText } from './element.js';

/** Brings the rows of a table in line with `items`. `make` gives a new row, `update` writes what may have changed. */
export function showRows(table, items, keyOf, make, update) {
    const body = table.tBodies[0];
    const before = new Map(Array.from(body.rows, (row) => [row.dataset.key, row]));
    const keys = new Set(items.map(keyOf));
    for (const [key, row] of before) if (!keys.has(key)) row.remove();
    let at = body.firstElementChild;
    for (const item of items) {
        const key = keyOf(item);
        const row = before.get(key) ?? make(item);
        row.dataset.key = key;
        update(row, item);
        if (row === at) at = at.nextElementSibling;
        else body.insertBefore(row, at);
    }
}

/** An empty table in its own scrolled box. A heading '' is that of the actions. */
export function tableOf(id, headings) {
    const heading = (text) => h('th', { scope: 'col' }, text === '' ? h('span', { className: 'unseen' }, 'Actions') : text);
    const table = h('table', { id }, h('thead', {}, h('tr', {}, ...headings.map(heading))), h('tbody'));
    return { table, scroll: h('div', { className: 'scroll' }, table) };
}

/** A row with a heading and `n` cells more. */
export function emptyRow(n) {
    return h('tr', {}, h('th', { scope: 'row' }), ...Array.from({ length: n }, () => h('td')));
}

const PHASES = {
    Open: 'Running', Closing: 'CancelRequested', Draining: 'Cancelling', Closed: 'Completed',
    IDLE: 'Running', CANCEL_REQUESTED: 'CancelRequested', DRAINING: 'Cancelling', DRAIN_TIMEOUT: 'CancelRequested',
    DRAIN_COMPLETE: 'Finalizing', FINALIZING: 'Finalizing', FINALIZED: 'Completed', LEAK_DETECTED: 'CancelRequested',
    Suspended: 'CancelRequested', Failed: 'CancelRequested', Terminated: 'CancelRequested', Cancelled: 'Completed',
};

/** The state of something, in the colour of its phase. */
export function showState(cell, state) {
    if (cell.firstElementChild === null) cell.append(h('span', { className: 'state' }));
    const span = cell.firstElementChild;
    setText(span, state);
    span.dataset.phase = PHASES[state] ?? state;
}

/** A button that says what it is for to those who can't see its row. */
export function rowButton(text, about, click) {
    return h('button', { type: 'button', onclick: click }, text, h('span', { className: 'unseen' }, ` ${about}`));
}

export function age(ms) {
    if (ms === undefined) return '';
    if (ms < 1000) return `${ms} ms`;
    if (ms < 120000) return `${(ms / 1000).toFixed(1)} s`;
    return ms < 7200000 ? `${Math.round(ms / 60000)} min` : `${(ms / 3600000).toFixed(1)} h`;
}
