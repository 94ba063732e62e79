/* Rows that have keys: a row that stays keeps its elements, and with them the focus. And buttons that ask back. */
import { h, setText } from './element.js';

/** Brings the children of `body` in line with `items`. `make` gives a new one, `update` writes what may have changed. */
export function showRows(body, items, keyOf, make, update) {
    const before = new Map(Array.from(body.children, (row) => [row.dataset.key, row]));
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
    const scroll = h('div', { className: 'scroll', tabIndex: 0, role: 'group', ariaLabel: `table of ${id}` }, table);
    return { table, scroll, body: table.tBodies[0] };
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
    const onclick = ({ currentTarget: button }) => button.getAttribute('aria-disabled') === null && click();
    return h('button', { type: 'button', onclick }, text, h('span', { className: 'unseen' }, ` ${about}`));
}

const ARMED_MS = 5000;

/** Takes a first press back. */
export function disarm(button) {
    delete button.dataset.armed;
    clearTimeout(button.timer);
    setText(button.firstChild, button.label);
}

/**
 * A button that asks back: `act(false)` returns the question, and a second press within a few seconds is act(true). It has
 * one question at a time.
 */
export function confirmButton(text, about, act) {
    const label = h('span', {}, text);
    const button = h('button', { type: 'button', className: 'confirm' }, label, h('span', { className: 'unseen' }, ` ${about}`));
    button.label = text;
    button.addEventListener('click', async () => {
        const armed = button.dataset.armed !== undefined;
        if (button.getAttribute('aria-disabled') !== null) return;
        if (armed) disarm(button);
        const question = await act(armed);
        if (armed || question === undefined) return;
        button.dataset.armed = '';
        setText(label, question);
        clearTimeout(button.timer);
        button.timer = setTimeout(() => disarm(button), ARMED_MS);
    });
    button.addEventListener('keydown', (event) => {
        if (event.key === 'Escape') disarm(button);
    });
    return button;
}

export const timeOf = (ns) => (ns === 0 ? '' : new Date(ns / 1e6).toLocaleString('sv'));

/** The status that an orchestration has given itself. */
export const shownCustom = (custom) => (custom === null ? '' : typeof custom === 'string' ? custom : JSON.stringify(custom));

export function age(ms) {
    if (ms === undefined) return '';
    if (ms < 1000) return `${ms} ms`;
    if (ms < 120000) return `${(ms / 1000).toFixed(1)} s`;
    return ms < 7200000 ? `${Math.round(ms / 60000)} min` : `${(ms / 3600000).toFixed(1)} h`;
}
