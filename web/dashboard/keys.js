/* The keys of the page: a list of them, and those that lead to the views. */
import { h } from './element.js';

const OFF = 'ebb-single-keys-off';
const EVERYWHERE = [['?', 'this list'], ['Escape', 'take a first press back']];
const IN_THE_TREE = [
    ['Up, Down, Page Up, Page Down, Home, End', 'from row to row'],
    ['Right, Left', 'open and close a region; into it, out of it'],
    ['Delete', 'cancel the region; a second time does it'],
];

const isField = (element) => element.matches?.('input, select, textarea, [contenteditable]') ?? false;

/** Digits lead to the views, in their order. A person who talks to a computer may switch single keys off. */
export function useKeys(views, go) {
    const dialog = document.querySelector('#shortcuts');
    const single = dialog.querySelector('#single-keys');
    const toViews = views.map((view, i) => [String(i + 1), view.title]);
    const pair = ([key, what]) => h('div', {}, h('dt', {}, key), h('dd', {}, what));
    dialog.querySelector('dl').append(...[...toViews, ...EVERYWHERE, ...IN_THE_TREE].map(pair));
    single.checked = localStorage.getItem(OFF) === null;
    single.addEventListener('change', () => {
        if (single.checked) localStorage.removeItem(OFF);
        else localStorage.setItem(OFF, '');
    });
    document.querySelector('#keys').addEventListener('click', () => dialog.showModal());
    dialog.querySelector('.close').addEventListener('click', () => dialog.close());
    document.addEventListener('keydown', (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || dialog.open || !single.checked) return;
        if (isField(event.target)) return;
        const view = views[Number(event.key) - 1];
        if (event.key === '?') dialog.showModal();
        else if (view !== undefined) go(view.name);
        else return;
        event.preventDefault();
    });
}
