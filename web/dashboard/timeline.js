/*
 * A history as bars over time: a row for each activity, timer, child and awaited event, from the turn that began it to the
 * one that heard how it ended; a tick for each turn; and a line where a cancel came in. What is not over runs on.
 */
import { h, setAttribute } from './element.js';

const ROW = 22;
const TOP = 26;
const ROWS = 60; /* the last ones */
const LEFT = 150;
const WIDTH = 900;
const BEGIN = { activity_scheduled: 'activity', timer_created: 'timer', child_started: 'child', event_awaited: 'event' };
const END = { activity_completed: 'Completed', activity_failed: 'Failed', timer_fired: 'Completed', child_completed: 'Completed',
    child_failed: 'Failed', step_cancelled: 'Cancelled', event_taken: 'Completed', signalled: 'Completed' };
const SVG = 'http://www.w3.org/2000/svg';

function s(tag, attributes, ...children) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
}

/** { what, name, from, to, how } of each step, in order; `to` is undefined for what is not over. */
function stepsOf(events) {
    const steps = new Map();
    for (const { number, at, kind, event } of events) {
        const what = BEGIN[kind];
        if (what !== undefined) steps.set(number, { number, what, name: event.name ?? event.id ?? what, from: at });
        const how = END[kind];
        if (how === undefined) continue;
        const step = kind === 'event_taken' || kind === 'signalled'
            ? [...steps.values()].find((one) => one.what === 'event' && one.name === event.name && one.to === undefined)
            : steps.get(event.step);
        if (step !== undefined && step.to === undefined) Object.assign(step, { to: at, how });
    }
    return [...steps.values()];
}

const spanText = (ns) => (ns < 1e9 ? `${Math.round(ns / 1e6)} ms` : ns < 6e11 ? `${(ns / 1e9).toFixed(1)} s` : `${Math.round(ns / 6e10)} min`);

export class Timeline {
    constructor() {
        this.svg = s('svg', { id: 'timeline', role: 'img' });
        this.element = h('div', { className: 'scroll', tabIndex: 0, role: 'group', ariaLabel: 'timeline of the history' }, this.svg);
    }

    show(events, info) {
        const all = stepsOf(events);
        const steps = all.slice(-ROWS);
        const from = info.started;
        const to = Math.max(info.ended || Date.now() * 1e6, events.at(-1)?.at ?? 0, from + 1e6);
        const x = (at) => LEFT + ((WIDTH - LEFT - 110) * (at - from)) / (to - from);
        const height = TOP + steps.length * ROW + 6;
        setAttribute(this.svg, 'viewBox', `0 0 ${WIDTH} ${height}`);
        setAttribute(this.svg, 'aria-label', this.#words(all, events));
        const turns = new Map(events.map((e) => [e.turn, e.at]));
        this.svg.replaceChildren(
            s('line', { x1: LEFT, x2: x(to), y1: TOP - 6, y2: TOP - 6, class: 'axis' }),
            s('text', { x: 4, y: TOP - 8 }, `${turns.size} turns`),
            s('text', { x: x(to) + 6, y: TOP - 2 }, spanText(to - from)),
            ...[...turns.values()].slice(-500).map((at) => s('line', { x1: x(at), x2: x(at), y1: TOP - 11, y2: TOP - 1, class: 'turn' })),
            ...events.filter((e) => e.kind === 'cancel_requested').map((e) =>
                s('line', { x1: x(e.at), x2: x(e.at), y1: TOP - 14, y2: height, class: 'cancel' })),
            ...steps.flatMap((step, i) => this.#bar(step, TOP + i * ROW, x, to)));
    }

    #bar(step, y, x, now) {
        const begin = x(step.from);
        const end = x(step.to ?? now);
        const how = step.how ?? 'Running';
        return [
            s('text', { x: 4, y: y + 15 }, `${step.what === step.name ? '' : `${step.what} `}${step.name}`.slice(0, 24)),
            s('rect', { x: begin, y: y + 5, width: Math.max(3, end - begin), height: 12, rx: 6, class: `bar ${step.what} ${how}` }),
            s('text', { x: end + 6, y: y + 15, class: 'how' }, how === 'Running' ? '' : `${how.toLowerCase()} ${spanText(step.to - step.from)}`),
        ];
    }

    #words(steps, events) {
        const open = steps.filter((step) => step.to === undefined).map((step) => `${step.what} ${step.name}`);
        const cancelled = events.some((e) => e.kind === 'cancel_requested') ? ', a cancel was requested' : '';
        return `${events.length} events, ${steps.length} steps${cancelled}${open.length > 0 ? `, not over: ${open.slice(0, 5).join(', ')}` : ''}`;
    }
}
