import { h } from './element.js';

/** What the words on this page mean, in the order in which they are explained. */
export const WORDS = {
    region: 'What tasks are spawned in. It closes only after everything in it has ended.',
    poll: 'One go at a task\'s code, from one wait to the next.',
    lane: 'The queue of a task that can run. cancel comes first (asked to stop), then timed (has a '
        + 'deadline), then ready.',
    parked: 'The task waits, for a timer for instance, and stands in no lane.',
    'turn, batch': 'A turn is one of the browser\'s event loop, a batch one run of the pump in it. '
        + 'The pump polls what stands in the lanes.',
    mask: 'How many masks the task has on. A cancel waits until there is none.',
    reason: 'Why it was asked to stop, and how strongly: polite, urgent or forced. RACE_LOST: another was '
        + 'first. SIBLING_FAILED: a task beside it failed. PARENT: its region was asked.',
    epoch: 'How often it was asked more strongly: 0 is never, 1 the first time.',
    budget: 'What is left to clean up in: time, and polls. When it is over the task is forced, and '
        + 'abandoned if it still goes on.',
    owed: 'Obligations, here leases, that are neither committed nor given back. One that is forgotten is a '
        + 'leak.',
    'value, other': 'Two numbers of a trace event: the lane of a poll, the depth of a mask, the end of a '
        + 'budget.',
    trap: 'The WebAssembly instance breaks, as by a bug. Its trace and its journal are all that is left.',
};

/** Fills the dialog, and opens it by the button. */
export function explain(dialog, button) {
    const pair = ([word, text]) => h('div', {}, h('dt', {}, word), h('dd', {}, text));
    dialog.querySelector('dl').append(...Object.entries(WORDS).map(pair));
    button.addEventListener('click', () => dialog.showModal());
    dialog.querySelector('button').addEventListener('click', () => dialog.close());
}
