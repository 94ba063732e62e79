/* The states of a type of machines as a picture: SVG, in layers from the first state on, and the same as a list of
 * sentences, for those who can't see it. */
import { h, setAttribute } from './element.js';

const SVG = 'http://www.w3.org/2000/svg';
const BOX = { width: 132, height: 34 };
const GAP = { x: 84, y: 66 };
const PAD = 16;
const LABEL_MOST = 24;
const WIDEST = 5;
const LABEL_ROOM = 130; /* beside the last box */

function s(tag, attributes = {}, ...children) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
}

/* ---- layout -------------------------------------------------------------------------------------------------------- */

/** One arrow for each pair of states, with all messages that take it. */
function arrowsOf(type) {
    const arrows = new Map();
    for (const { from, on, to } of type.transitions) {
        for (const target of to ?? []) {
            const key = JSON.stringify([from, target]);
            if (!arrows.has(key)) arrows.set(key, { from, to: target, on: [] });
            arrows.get(key).on.push(on);
        }
    }
    return [...arrows.values()];
}

/** A layer that would be too wide to be read, as several. */
function rowsOf(layer) {
    const rows = Math.ceil(layer.length / WIDEST);
    return Array.from({ length: rows }, (_, i) => layer.slice(i * WIDEST, (i + 1) * WIDEST));
}

/** Each state is one layer below the nearest that leads to it; what nothing leads to comes last. */
function layersOf(type) {
    const arrows = arrowsOf(type);
    const first = type.initial.length > 0 ? type.initial : type.states.slice(0, 1).map((state) => state.name);
    const layers = [first];
    const seen = new Set(first);
    for (let layer = first; layer.length > 0; ) {
        const next = [];
        for (const { from, to } of arrows) {
            if (!layer.includes(from) || seen.has(to)) continue;
            seen.add(to);
            next.push(to);
        }
        if (next.length > 0) layers.push(next);
        layer = next;
    }
    const rest = type.states.map((state) => state.name).filter((name) => !seen.has(name));
    if (rest.length > 0) layers.push(rest);
    return { layers: layers.flatMap(rowsOf), arrows };
}

function placesOf(layers) {
    const most = Math.max(...layers.map((layer) => layer.length));
    const width = PAD * 2 + most * BOX.width + (most - 1) * GAP.x;
    const places = new Map();
    layers.forEach((layer, row) => {
        const own = layer.length * BOX.width + (layer.length - 1) * GAP.x;
        layer.forEach((name, column) => {
            places.set(name, {
                row,
                x: (width - own) / 2 + column * (BOX.width + GAP.x) + BOX.width / 2,
                y: PAD + row * (BOX.height + GAP.y) + BOX.height / 2,
            });
        });
    });
    return { places, width: width + LABEL_ROOM, height: PAD * 2 + layers.length * BOX.height + (layers.length - 1) * GAP.y };
}

/**
 * Between neighbours of a layer, across the gap; to the next layer, down on the left and up on the right, so that two arrows
 * between the same states stay apart; else around the right side.
 */
function pathOf(a, b) {
    const half = BOX.height / 2;
    const side = BOX.width / 2;
    const rows = b.row - a.row;
    if (rows === 0 && Math.abs(a.x - b.x) === BOX.width + GAP.x) {
        const way = Math.sign(b.x - a.x);
        const y = a.y + 7 * way;
        return { d: `M${a.x + side * way} ${y}L${b.x - (side + 4) * way} ${y}`, x: (a.x + b.x) / 2, y: y + (way > 0 ? 15 : -7), most: 11 };
    }
    if (Math.abs(rows) === 1) {
        const [x1, x2] = [a.x - 16 * rows, b.x - 16 * rows];
        const [y1, y2] = [a.y + half * rows, b.y - (half + 4) * rows];
        const [bend1, bend2] = [y1 + 24 * rows, y2 - 24 * rows];
        return { d: `M${x1} ${y1}C${x1} ${bend1} ${x2} ${bend2} ${x2} ${y2}`, x: x1 + 0.6 * (x2 - x1), y: y1 + 0.6 * (y2 - y1) + 4 };
    }
    const out = Math.max(a.x, b.x) + side + 30 + 5 * Math.abs(rows);
    return {
        d: `M${a.x + side} ${a.y - 6}C${out} ${a.y - 6} ${out} ${b.y + 6} ${b.x + side + 4} ${b.y + 6}`,
        x: out - 18, y: (a.y + b.y) / 2, anchor: 'start',
    };
}

const cut = (text, most = LABEL_MOST) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/* ---- words --------------------------------------------------------------------------------------------------------- */

function sentence({ on, what, to, stays }) {
    const when = on === 'after' ? 'a timer' : on;
    if (what === 'defer') return `${when} waits for another state`;
    if (what === 'ignore') return `${when} is dropped`;
    if (to === null) return `${when} is handled`;
    return to.length === 0 ? `${when} stays` : `${when} leads to ${to.join(' or ')}${stays ? ', or stays' : ''}`;
}

/** What the picture shows, as a list. */
function wordsOf(type) {
    const items = type.states.map(({ name, final, on_fault: onFault }) => {
        const notes = [type.initial.includes(name) && 'first', final && 'final', onFault && 'after a fault'].filter(Boolean);
        const does = type.transitions.filter((t) => t.from === name).map(sentence);
        const head = notes.length > 0 ? `${name} (${notes.join(', ')})` : name;
        return h('li', {}, `${head}: ${does.length > 0 ? does.join('; ') : 'takes nothing'}`);
    });
    return h('ul', { className: 'states' }, ...items);
}

/* ---- the picture --------------------------------------------------------------------------------------------------- */

export class Diagram {
    #states = new Map();
    #arrows = new Map();
    #labels = s('g'); /* above all else */
    #type;

    constructor(type) {
        this.#type = type;
        const { layers, arrows } = layersOf(type);
        const { places, width, height } = placesOf(layers);
        this.svg = s('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', class: 'diagram' });
        this.svg.style.setProperty('--wide', `${width}px`);
        this.svg.append(s('defs', {}, s('marker', {
            id: 'arrow', viewBox: '0 0 8 8', refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto-start-reverse',
        }, s('path', { d: 'M0 0L8 4L0 8z' }))));
        for (const arrow of arrows) this.#drawArrow(arrow, pathOf(places.get(arrow.from), places.get(arrow.to)));
        for (const state of type.states) this.#drawState(state, places.get(state.name));
        this.svg.append(this.#labels);
        this.words = wordsOf(type);
        this.element = h('figure', { className: 'states' }, this.svg,
            h('details', {}, h('summary', {}, 'The same in words'), this.words));
    }

    #drawArrow({ from, to, on }, { d, x, y, most, anchor = 'middle' }) {
        const path = s('path', { d, class: 'arrow', 'marker-end': 'url(#arrow)' });
        const title = () => s('title', {}, `${from} to ${to}: ${on.join(', ')}`);
        this.svg.append(s('g', {}, title(), path));
        this.#labels.append(s('text', { x, y, class: `on ${anchor}` }, title(), cut(on.join(', '), most)));
        this.#arrows.set(JSON.stringify([from, to]), path);
    }

    #drawState({ name, final }, { x, y }) {
        const box = { x: x - BOX.width / 2, y: y - BOX.height / 2, width: BOX.width, height: BOX.height, rx: 9 };
        const group = s('g', { class: final ? 'state final' : 'state' }, s('title', {}, name), s('rect', box));
        if (final) group.append(s('rect', { ...box, x: box.x + 3, y: box.y + 3, width: box.width - 6, height: box.height - 6, rx: 7 }));
        group.append(s('text', { x, y: y + 4 }, cut(name)));
        this.svg.append(group);
        this.#states.set(name, group);
    }

    /** Lights the state; an arrow that leads there from the one before is shown as taken. */
    show(state, before) {
        for (const [name, group] of this.#states) group.classList.toggle('now', name === state);
        setAttribute(this.svg, 'aria-label', `States of ${this.#type.type}: now in ${state}`);
        if (before === undefined || before === state) return;
        for (const path of this.#arrows.values()) path.classList.remove('taken');
        const path = this.#arrows.get(JSON.stringify([before, state]));
        if (path === undefined) return;
        path.style.setProperty('--length', String(Math.ceil(path.getTotalLength())));
        void path.getBoundingClientRect(); /* so that the animation begins again */
        path.classList.add('taken');
    }

}
