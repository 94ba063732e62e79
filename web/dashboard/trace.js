/* Captures of the service's trace: recorded, read, and shown as lanes; the selected lane also as a table. */
import { askBytes, change } from './api.js';
import { h, setText } from './element.js';
import { Lanes, span } from './lanes.js';
import { readTrace } from './trace_read.js';

const ROWS = 100;
const section = document.querySelector('#trace');
const table = document.querySelector('#lane-slices');
const title = document.querySelector('#lane-title');
let trace = { lanes: [], from: 0 };
let shown = '';

function row(slice, lanes) {
    const go = h('button', { type: 'button', onclick: () => lanes.goTo(slice) }, span(slice.from - trace.from));
    return h('tr', {}, h('th', { scope: 'row' }, go), h('td', {}, span(slice.to - slice.from)), h('td', {}, slice.name));
}

/** The table has what the canvas shows of the selected lane. */
function showLane(lanes) {
    const lane = lanes.lanes[lanes.selected];
    if (lane === undefined) return;
    const { slices, more } = lanes.inView(ROWS);
    const key = `${lanes.selected} ${slices.length} ${slices[0]?.from}`;
    if (key === shown) return;
    shown = key;
    setText(title, `${lane.name}: ${slices.length}${more ? ' and more' : ''} of ${lane.slices.length} slices`);
    table.tBodies[0].replaceChildren(...slices.map((slice) => row(slice, lanes)));
}

function show(lanes, bytes) {
    trace = readTrace(bytes);
    shown = '';
    section.querySelector('#trace-view').hidden = false;
    lanes.show(trace);
    return `${trace.events} events in ${trace.lanes.length} lanes, ${span(trace.to - trace.from)}`;
}

const sleep = (ms) => new Promise((resolve) => {
    setTimeout(resolve, ms);
});

/** Ends what is being recorded, if it has not ended, and shows it. */
async function stop(lanes) {
    await change('api/v1/trace/stop');
    return show(lanes, await askBytes('api/v1/trace'));
}

async function record(lanes, seconds) {
    await change('api/v1/trace/start', { seconds });
    await sleep(seconds * 1000);
    return stop(lanes);
}

/** @param {(what: string, outcome: Promise) => void} say */
export function useTrace(say) {
    const lanes = new Lanes(section.querySelector('canvas'), showLane);
    section.querySelector('form').addEventListener('submit', (event) => {
        event.preventDefault();
        const seconds = Number(section.querySelector('[name="seconds"]').value);
        say(`trace of ${seconds} s`, record(lanes, seconds));
    });
    section.querySelector('#trace-stop').addEventListener('click', () => say('trace', stop(lanes)));
    section.querySelector('#trace-all').addEventListener('click', () => lanes.all());
    section.querySelector('#trace-in').addEventListener('click', () => lanes.zoom(0.5));
    section.querySelector('#trace-out').addEventListener('click', () => lanes.zoom(2));
}
