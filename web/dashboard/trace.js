/* The view of captures: the service's trace recorded, read, and shown as lanes; the selected lane also as a table. */
import { askBytes } from './api.js';
import { h, setText } from './element.js';
import { Lanes, span } from './lanes.js';
import { readTrace } from './trace_read.js';

const ROWS = 100;
const KEYS = 'Up and down select a lane, left and right move, + and - zoom, Home shows all. Ctrl and the wheel zoom, a drag moves.';
const HINT = 'What runs while it is recorded is shown as lanes: requests, tasks, regions, instances, activities, machines. '
    + 'Stop and show shows the last recording, if there is one. It needs the token.';

class Trace {
    #host;
    #trace = { lanes: [], from: 0 };
    #shown = '';

    constructor(host) {
        this.#host = host;
        this.title = h('span', { id: 'lane-title', role: 'status' });
        this.rows = h('tbody');
        this.canvas = h('canvas', {
            'tabindex': '0', 'role': 'img', 'aria-describedby': 'trace-keys',
            'aria-label': 'Lanes of the trace; the selected one is the table below',
        });
        this.seconds = h('select', { name: 'seconds' },
            ...[2, 5, 20, 60].map((s) => h('option', { value: s, selected: s === 5 }, `${s} s`)));
        const button = (id, text, onclick) => h('button', { type: 'button', id, onclick }, text);
        this.form = h('form', {}, h('label', {}, 'For ', this.seconds), h('button', { type: 'submit' }, 'Record'),
            button('trace-stop', 'Stop and show', () => host.say('trace', this.#stop())));
        this.view = h('div', { id: 'trace-view', hidden: true },
            h('form', {}, button('trace-all', 'All', () => this.lanes.all()), button('trace-in', 'Closer', () => this.lanes.zoom(0.5)),
                button('trace-out', 'Farther', () => this.lanes.zoom(2)), h('span', { id: 'trace-keys', className: 'quiet' }, KEYS)),
            this.canvas, h('h3', {}, this.title),
            h('div', { 'className': 'scroll', 'tabindex': '0', 'role': 'region', 'aria-labelledby': 'lane-title' },
                h('table', { id: 'lane-slices' },
                    h('thead', {}, h('tr', {}, ...['At', 'For', 'What'].map((name) => h('th', { scope: 'col' }, name)))), this.rows)));
        this.hint = h('p', { className: 'quiet' }, HINT);
        this.element = h('div', { id: 'trace', className: 'panel' }, h('h3', {}, 'Trace'), this.form, this.hint, this.view);
        this.form.addEventListener('submit', (event) => {
            event.preventDefault();
            const seconds = Number(this.seconds.value);
            host.say(`trace of ${seconds} s`, this.#record(seconds));
        });
    }

    /** Once the element is on the page. */
    begin() {
        this.lanes = new Lanes(this.canvas, (lanes) => this.#showLane(lanes));
    }

    #row(slice) {
        const go = h('button', { type: 'button', onclick: () => this.lanes.goTo(slice) }, span(slice.from - this.#trace.from));
        return h('tr', {}, h('th', { scope: 'row' }, go), h('td', {}, span(slice.to - slice.from)), h('td', {}, slice.name));
    }

    /** The table has what the canvas shows of the selected lane. */
    #showLane(lanes) {
        const lane = lanes.lanes[lanes.selected];
        if (lane === undefined) return;
        const { slices, more } = lanes.inView(ROWS);
        const { crowd } = lanes;
        const key = `${lanes.selected} ${slices.length} ${slices[0]?.from} ${crowd}`;
        if (key === this.#shown) return;
        this.#shown = key;
        setText(this.title, `${lane.name}: ${slices.length}${more ? ' and more' : ''} of ${lane.slices.length} slices`
            + (crowd > 0 ? `; look closer to see its ${crowd} arrows` : ''));
        this.rows.replaceChildren(...slices.map((slice) => this.#row(slice)));
    }

    #show(bytes) {
        this.#trace = readTrace(bytes);
        this.#shown = '';
        this.view.hidden = false;
        this.hint.hidden = true;
        this.lanes.show(this.#trace);
        return `${this.#trace.events} events in ${this.#trace.lanes.length} lanes, ${span(this.#trace.to - this.#trace.from)}`;
    }

    /** Ends what is being recorded, if it has not ended, and shows it. */
    async #stop() {
        await this.#host.change('api/v1/trace/stop');
        return this.#show(await askBytes('api/v1/trace'));
    }

    async #record(seconds) {
        await this.#host.change('api/v1/trace/start', { seconds });
        await new Promise((recorded) => {
            setTimeout(recorded, seconds * 1000);
        });
        return this.#stop();
    }
}

export function trace(place, host) {
    const view = new Trace(host);
    place.append(view.element);
    view.begin();
}
