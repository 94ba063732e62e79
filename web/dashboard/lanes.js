/* Swim lanes on a canvas: slices, and the arrows of the lane that is selected. What is narrower than a pixel is drawn once a
 * pixel, and only lanes in view are looked at: so a frame costs the size of the picture, and not that of the trace. */

const ROW = 22;
const TOP = 22; /* the scale */
const LABEL = 220;
const LEAST_NS = 200; /* of time in the whole width */
const ARROWS = 200; /* at a time; more would hide the lanes */
const AROUND = 3; /* lanes around the selected one that stay in view */
const KINDS = { host: 'Completed', task: 'Running', region: 'Finalizing', instance: 'Cancelling', activity: 'Running', machine: 'surface' };

/** The first slice that ends after a time. */
function firstAfter(slices, time) {
    let low = 0;
    let high = slices.length;
    while (low < high) {
        const middle = (low + high) >>> 1;
        if (slices[middle].to > time) high = middle;
        else low = middle + 1;
    }
    return low;
}

/** "1.25 ms" */
export function span(ns) {
    if (ns < 1e3) return `${Math.round(ns)} ns`;
    if (ns < 1e6) return `${(ns / 1e3).toFixed(2)} µs`;
    return ns < 1e9 ? `${(ns / 1e6).toFixed(2)} ms` : `${(ns / 1e9).toFixed(2)} s`;
}

export class Lanes {
    #canvas;
    #context;
    #changed;
    #trace = { lanes: [], arrows: [], from: 0, to: 1 };
    #touching = []; /* arrows of the selected lane */
    #queued = false;
    #colors = {};
    #width = 0;
    #height = 0;
    #drag = null;
    #hover = null;

    /** `changed` is called when another lane, or another part of the time, is looked at. */
    constructor(canvas, changed) {
        this.#canvas = canvas;
        this.#context = canvas.getContext('2d');
        this.#changed = changed;
        this.from = 0;
        this.to = 1;
        this.scroll = 0;
        this.selected = 0;
        canvas.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
        canvas.addEventListener('keydown', (event) => this.#key(event));
        canvas.addEventListener('pointerdown', (event) => this.#down(event));
        canvas.addEventListener('pointermove', (event) => this.#move(event));
        canvas.addEventListener('pointerup', (event) => this.#up(event));
        canvas.addEventListener('pointerleave', () => this.#point(null));
        new ResizeObserver(() => this.#resized()).observe(canvas);
        matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#resized());
    }

    show(trace) {
        this.#trace = trace;
        this.scroll = 0;
        this.all();
        this.select(0);
    }

    get lanes() {
        return this.#trace.lanes;
    }

    /** Slices of the selected lane that are in view, at most `most`. */
    inView(most) {
        const slices = this.lanes[this.selected]?.slices ?? [];
        const first = firstAfter(slices, this.from);
        const found = slices.slice(first, first + most).filter(({ from }) => from <= this.to);
        return { slices: found, more: (slices[first + most]?.from ?? Infinity) <= this.to };
    }

    /** Arrows of the selected lane that are in view. */
    #seen() {
        return this.#touching.filter(({ at, end }) => end >= this.from && at <= this.to);
    }

    /** How many they are, if they are too many to be drawn; otherwise 0. */
    get crowd() {
        const n = this.#seen().length;
        return n > ARROWS ? n : 0;
    }

    select(i) {
        this.selected = Math.max(0, Math.min(this.lanes.length - 1, i));
        this.#touching = this.#trace.arrows.filter(({ from, to }) => from === this.selected || to === this.selected);
        const at = this.selected * ROW;
        const room = this.#height - TOP;
        const end = Math.min(this.lanes.length * ROW, at + AROUND * ROW);
        if (at - AROUND * ROW < this.scroll) this.scroll = Math.max(0, at - AROUND * ROW);
        else if (end > this.scroll + room) this.scroll = end - room;
        this.#look();
    }

    all() {
        const { from, to } = this.#trace;
        this.#see(from, to);
    }

    /** Brings a slice into view, with as much around it. */
    goTo({ from, to }) {
        const length = Math.max(LEAST_NS, to - from);
        this.#see(from - length, from + 2 * length);
    }

    /** By a factor, around a time; without one, the middle. */
    zoom(factor, around = (this.from + this.to) / 2) {
        this.#see(around - (around - this.from) * factor, around + (this.to - around) * factor);
    }

    /** By a part of the width. */
    pan(part) {
        const by = (this.to - this.from) * part;
        this.#see(this.from + by, this.to + by);
    }

    #see(from, to) {
        const all = this.#trace;
        const whole = Math.max(LEAST_NS, all.to - all.from);
        const length = Math.min(whole, Math.max(LEAST_NS, to - from));
        const middle = (from + to) / 2;
        this.from = Math.min(Math.max(middle - length / 2, all.from), all.from + whole - length);
        this.to = this.from + length;
        this.#look();
    }

    #look() {
        this.#changed(this);
        this.draw();
    }

    /** In the next frame. */
    draw() {
        if (this.#queued) return;
        this.#queued = true;
        requestAnimationFrame(() => {
            this.#queued = false;
            this.paint();
        });
    }

    /* ---- painting ---- */

    #resized() {
        const { width, height } = this.#canvas.getBoundingClientRect();
        const style = getComputedStyle(this.#canvas);
        for (const name of ['panel', 'ink', 'quiet', 'line', 'edge', 'surface', 'accent', 'tint', 'Running', 'CancelRequested', 'Cancelling', 'Finalizing', 'Completed'])
            this.#colors[name] = style.getPropertyValue(`--${name}`).trim();
        this.#width = width;
        this.#height = height;
        this.#canvas.width = Math.round(width * devicePixelRatio);
        this.#canvas.height = Math.round(height * devicePixelRatio);
        this.draw();
    }

    #x(time) {
        return LABEL + ((time - this.from) / (this.to - this.from)) * (this.#width - LABEL);
    }

    #time(x) {
        return this.from + ((x - LABEL) / (this.#width - LABEL)) * (this.to - this.from);
    }

    paint() {
        const c = this.#context;
        const colors = this.#colors;
        c.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
        c.fillStyle = colors.panel;
        c.fillRect(0, 0, this.#width, this.#height);
        c.font = '12px system-ui, sans-serif';
        c.textBaseline = 'middle';
        const first = Math.floor(this.scroll / ROW);
        const last = Math.min(this.lanes.length, Math.ceil((this.scroll + this.#height - TOP) / ROW));
        for (let i = first; i < last; i++) this.#lane(c, i, TOP + i * ROW - this.scroll);
        this.#arrows(c);
        this.#scale(c);
        this.#tip(c);
    }

    #lane(c, i, y) {
        const lane = this.lanes[i];
        const colors = this.#colors;
        if (i === this.selected) {
            c.fillStyle = colors.tint;
            c.fillRect(0, y, this.#width, ROW);
        }
        c.fillStyle = colors.line;
        c.fillRect(0, y + ROW - 1, this.#width, 1);
        c.save();
        c.beginPath();
        c.rect(LABEL, y, this.#width - LABEL, ROW);
        c.clip();
        this.#slices(c, lane, y);
        c.restore();
        c.save();
        c.beginPath();
        c.rect(0, y, LABEL - 8, ROW);
        c.clip();
        c.fillStyle = lane.kind === 'task' ? colors.quiet : colors.ink;
        c.fillText(lane.name, 10, y + ROW / 2);
        c.restore();
    }

    #slices(c, lane, y) {
        const { slices } = lane;
        const pixel = (this.to - this.from) / (this.#width - LABEL);
        for (let i = firstAfter(slices, this.from); i < slices.length && slices[i].from <= this.to;) {
            const { from, to, name, phase } = slices[i];
            const x = this.#x(from);
            const width = Math.max(1, this.#x(to) - x);
            const waits = phase === 'waits';
            c.fillStyle = this.#colors[waits ? 'edge' : this.#colors[phase] === undefined ? KINDS[lane.kind] : phase];
            if (waits) c.fillRect(x, y + ROW - 5, width, 1);
            else c.fillRect(x, y + 3, width, ROW - 7);
            if (width > 40) this.#inside(c, name, Math.max(x, LABEL), y, Math.min(x + width, this.#width), waits);
            /* What begins in the same pixel would be drawn over. */
            i = to - from >= pixel ? i + 1 : Math.max(i + 1, firstAfter(slices, from + pixel));
        }
    }

    #inside(c, name, x, y, end, waits) {
        c.save();
        c.beginPath();
        c.rect(x, y, end - x - 3, ROW);
        c.clip();
        c.fillStyle = waits ? this.#colors.quiet : this.#colors.panel;
        c.fillText(name, x + 4, y + ROW / 2 - (waits ? 2 : 0));
        c.restore();
    }

    #arrows(c) {
        const middle = (i) => TOP + i * ROW - this.scroll + ROW / 2;
        if (this.crowd > 0) return;
        c.save();
        c.beginPath();
        c.rect(LABEL, TOP, this.#width - LABEL, this.#height - TOP);
        c.clip();
        c.strokeStyle = this.#colors.accent;
        c.fillStyle = this.#colors.accent;
        for (const { from, at, to, end } of this.#seen()) {
            const [x0, y0, x1, y1] = [this.#x(at), middle(from), this.#x(end), middle(to)];
            const bend = Math.max(12, (x1 - x0) / 2);
            c.beginPath();
            c.moveTo(x0, y0);
            c.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
            c.stroke();
            c.beginPath();
            c.arc(x1, y1, 3, 0, 2 * Math.PI);
            c.fill();
        }
        c.restore();
    }

    #scale(c) {
        const length = this.to - this.from;
        const step = 10 ** Math.floor(Math.log10(length)) / (length / 10 ** Math.floor(Math.log10(length)) < 3 ? 5 : 1);
        c.fillStyle = this.#colors.panel;
        c.fillRect(0, 0, this.#width, TOP);
        c.fillStyle = this.#colors.quiet;
        c.fillText(`${span(length)} of ${span(this.#trace.to - this.#trace.from)}`, 10, TOP / 2);
        const zero = this.#trace.from;
        for (let t = Math.ceil((this.from - zero) / step) * step; t <= this.to - zero; t += step) {
            const x = this.#x(t + zero);
            c.fillRect(x, TOP - 5, 1, 5);
            c.fillText(span(t), x + 3, TOP / 2 - 1);
        }
    }

    #tip(c) {
        if (this.#hover === null) return;
        const { x, y, text } = this.#hover;
        const width = c.measureText(text).width + 16;
        const left = Math.min(x + 12, this.#width - width);
        const top = y + 30 > this.#height ? y - 26 : y + 14;
        c.fillStyle = this.#colors.ink;
        c.fillRect(left, top, width, 20);
        c.fillStyle = this.#colors.panel;
        c.fillText(text, left + 8, top + 10);
    }

    /* ---- mouse and keyboard ---- */

    #wheel(event) {
        const zooms = event.ctrlKey || event.metaKey;
        const by = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
        const room = Math.max(0, this.lanes.length * ROW - (this.#height - TOP));
        const to = Math.max(0, Math.min(room, this.scroll + by));
        if (!zooms && !event.shiftKey && to === this.scroll && event.deltaX === 0) return; /* the page scrolls */
        event.preventDefault();
        if (zooms) {
            this.zoom(1.0015 ** by, this.#time(event.offsetX));
        } else if (event.shiftKey || event.deltaX !== 0) {
            this.pan((event.deltaX || by) / (this.#width - LABEL));
        } else {
            this.scroll = to;
            this.draw();
        }
    }

    #key(event) {
        const keys = {
            ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2),
            ArrowUp: () => this.select(this.selected - 1), ArrowDown: () => this.select(this.selected + 1),
            PageUp: () => this.select(this.selected - 10), PageDown: () => this.select(this.selected + 10),
            Home: () => this.all(), '+': () => this.zoom(0.5), '=': () => this.zoom(0.5), '-': () => this.zoom(2),
        };
        if (event.ctrlKey || event.metaKey || event.altKey || keys[event.key] === undefined) return;
        event.preventDefault();
        keys[event.key]();
    }

    #row(y) {
        return Math.floor((y - TOP + this.scroll) / ROW);
    }

    #down(event) {
        this.#canvas.setPointerCapture(event.pointerId);
        this.#drag = { x: event.offsetX, y: event.offsetY, from: this.from, to: this.to, scroll: this.scroll, moved: false };
    }

    #move(event) {
        const drag = this.#drag;
        if (drag === null) {
            this.#point(event);
            return;
        }
        const [dx, dy] = [event.offsetX - drag.x, event.offsetY - drag.y];
        drag.moved ||= Math.abs(dx) + Math.abs(dy) > 4;
        if (!drag.moved) return;
        const by = (-dx / (this.#width - LABEL)) * (drag.to - drag.from);
        const room = Math.max(0, this.lanes.length * ROW - (this.#height - TOP));
        this.scroll = Math.max(0, Math.min(room, drag.scroll - dy));
        this.#see(drag.from + by, drag.to + by);
    }

    #up(event) {
        const moved = this.#drag?.moved;
        this.#drag = null;
        const i = this.#row(event.offsetY);
        if (!moved && event.offsetY > TOP && i < this.lanes.length) this.select(i);
    }

    #point(event) {
        const lane = event === null ? undefined : this.lanes[this.#row(event.offsetY)];
        const time = event === null ? 0 : this.#time(event.offsetX);
        const slice = lane?.slices[firstAfter(lane.slices, time)];
        const before = this.#hover;
        const on = slice !== undefined && slice.from <= time && event.offsetX > LABEL && event.offsetY > TOP;
        this.#hover = on ? { x: event.offsetX, y: event.offsetY, text: `${slice.name}, ${span(slice.to - slice.from)}` } : null;
        if (before !== null || this.#hover !== null) this.draw();
    }
}
