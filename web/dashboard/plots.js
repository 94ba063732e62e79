/* Throughput, latency and how fast cancels arrive, over the last ten minutes. */
import { h, setAttribute, setText } from './element.js';

const SPANS_MS = [60000, 600000];
const HEIGHT = 150;
const LEFT = 52;
const RIGHT = 10;
const TOP = 10;
const BOTTOM = 22;

const perSecond = (n) => `${n < 10 ? Number(n.toFixed(1)) : Math.round(n)}/s`;
function span(ms) {
    if (ms < 1) return `${Number((ms * 1000).toPrecision(2))} µs`;
    return ms < 1000 ? `${Number(ms.toPrecision(2))} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/* `log`: times go over many powers of ten. */
const PLOTS = [
    { title: 'Throughput', say: perSecond, lines: [['requests', 'requests at this address'], ['turns', 'turns of instances']] },
    { title: 'Requests at this address', say: span, log: true, lines: [['request50', 'p50'], ['request99', 'p99']] },
    { title: 'Polls of tasks', say: span, log: true, lines: [['poll50', 'p50'], ['poll99', 'p99']] },
    { title: 'Cancel to task', say: span, log: true, lines: [['cancel50', 'p50'], ['cancel99', 'p99']] },
];

/** Round numbers from `low` to `high`. */
function ticksOf(low, high, log) {
    if (log) {
        const first = Math.floor(Math.log10(low));
        return Array.from({ length: Math.ceil(Math.log10(high)) - first + 1 }, (_, i) => 10 ** (first + i));
    }
    const step = [1, 2, 5].map((m) => m * 10 ** Math.floor(Math.log10(high / 2))).findLast((s) => s <= high / 2);
    return Array.from({ length: Math.ceil(high / step) + 1 }, (_, i) => i * step);
}

function rangeOf(points, lines, log) {
    const all = points.flatMap((p) => lines.map(([key]) => p[key])).filter((n) => Number.isFinite(n) && (!log || n > 0));
    if (all.length === 0) return undefined;
    return [log ? Math.min(...all) : 0, Math.max(...all, log ? 0 : 1)];
}

/** One plot: a canvas for the eye, and the last values in words. */
class Plot {
    constructor({ title, say, log, lines }) {
        Object.assign(this, { say, log, lines });
        this.canvas = h('canvas', { 'aria-hidden': 'true' });
        this.values = lines.map(([, name], i) => {
            const value = h('b', {}, '-');
            return { value, element: h('span', { className: `key key-${i}` }, `${name} `, value) };
        });
        const words = h('div', { className: 'bar' }, h('h3', {}, title), ...this.values.map((v) => v.element));
        this.element = h('figure', { className: 'panel plot', ariaLabel: title }, words, this.canvas);
    }

    draw(points, from, to, colours) {
        const last = points.at(-1);
        this.lines.forEach(([key], i) => {
            const recent = points.findLast((p) => Number.isFinite(p[key]));
            const is = this.log ? recent : last;
            setText(this.values[i].value, is === undefined || !Number.isFinite(is[key]) ? '-' : this.say(is[key]));
        });
        const width = this.canvas.clientWidth;
        const scale = Math.min(2, devicePixelRatio || 1);
        const size = [Math.round(width * scale), HEIGHT * scale];
        if (this.canvas.width !== size[0] || this.canvas.height !== size[1]) [this.canvas.width, this.canvas.height] = size;
        const c = this.canvas.getContext('2d');
        c.setTransform(scale, 0, 0, scale, 0, 0);
        c.clearRect(0, 0, width, HEIGHT);
        this.#paint(c, points, { from, to, width, colours });
    }

    #paint(c, points, { from, to, width, colours }) {
        const range = rangeOf(points, this.lines, this.log);
        if (range === undefined || width === 0) return;
        const ticks = ticksOf(...range, this.log);
        const f = this.log ? Math.log10 : (n) => n;
        const [low, high] = [f(ticks[0]), f(ticks.at(-1))];
        const x = (at) => LEFT + ((width - LEFT - RIGHT) * (at - from)) / (to - from);
        const y = (n) => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * (f(n) - low)) / (high - low || 1);
        c.font = '11px "DejaVu Sans Condensed", sans-serif';
        c.textAlign = 'right';
        for (const tick of ticks) {
            c.fillStyle = colours.line;
            c.fillRect(LEFT, Math.round(y(tick)), width - LEFT - RIGHT, 1);
            c.fillStyle = colours.quiet;
            c.fillText(this.say(tick), LEFT - 6, y(tick) + 4);
        }
        c.textAlign = 'center';
        for (let i = 1; i < 5; i++) c.fillText(`-${Math.round(((to - from) * (5 - i)) / 5000)} s`, x(from + ((to - from) * i) / 5), HEIGHT - 6);
        this.lines.forEach(([key], i) => {
            c.strokeStyle = c.fillStyle = colours[i];
            c.lineWidth = 1.75;
            c.beginPath();
            let broken = true;
            for (const point of points) {
                const n = point[key];
                const isNumber = Number.isFinite(n) && (!this.log || n > 0);
                if (isNumber && broken) c.fillRect(x(point.at) - 1, y(n) - 1, 2, 2);
                if (isNumber) c[broken ? 'moveTo' : 'lineTo'](x(point.at), y(n));
                broken = !isNumber;
            }
            c.stroke();
        });
    }
}

export function plots(place, { series }) {
    const all = PLOTS.map((plot) => new Plot(plot));
    let [shown] = SPANS_MS;
    const draw = () => {
        const style = getComputedStyle(place);
        const colour = (name) => style.getPropertyValue(`--${name}`).trim();
        const colours = { line: colour('line'), quiet: colour('quiet'), 0: colour('surface'), 1: colour('CancelRequested') };
        const to = performance.now();
        const points = series.points.filter((p) => p.at >= to - shown);
        for (const plot of all) plot.draw(points, to - shown, to, colours);
    };
    const choice = SPANS_MS.map((ms) => h('button', { type: 'button', onclick: () => choose(ms) }, `${ms / 60000} min`));
    const choose = (ms) => {
        shown = ms;
        choice.forEach((button, i) => setAttribute(button, 'aria-pressed', SPANS_MS[i] === ms));
        draw();
    };
    place.append(h('div', { className: 'bar', role: 'group', ariaLabel: 'Time shown' }, ...choice,
        h('span', { className: 'quiet' }, 'since the page was opened; times are right to a factor of two')),
    h('div', { className: 'plots' }, ...all.map((plot) => plot.element)));
    choose(shown);
    new ResizeObserver(draw).observe(place);
    return { shown: draw, on: { live: draw } };
}
