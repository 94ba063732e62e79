/**
 * The picture: a row a task, coloured by its phase over time, and the water of its regions behind it. It lies
 * below the rows of the tree and shares their scroll position, so a name and its past stand in one line.
 */
const SPANS_MS = { live: 10000, slow: 2400 };
const FIRST = 0.5; /* of a span */
const LEVELS = { Open: 0.86, Closing: 0.72, Draining: 0.48, Finalizing: 0.22, Closed: 0.05 };
const EBB_PX = 26; /* in which the water falls from one level to the next */
const STEPS_MS = [50, 100, 200, 500, 1000, 2000, 5000];
const AXIS = 24; /* px, above the rows */
const MARGIN = 66; /* px, right of now: for how something ended */
const BAR = 11;
const ACKED = new Set(['Cancelling', 'Finalizing']);
const COLOURS = ['ink', 'quiet', 'line', 'panel', 'water', 'surface', 'Created', 'Running', 'CancelRequested',
    'Cancelling', 'Finalizing', 'Completed', 'bad'];

export class Tide {
    #canvas;
    #context;
    #scrolled = 0;
    #swell = 0; /* how far the ripples have gone */
    #colours = {};
    #hatch;
    #size = { width: 0, height: 0 };
    #layout = {};
    #span = SPANS_MS.live;
    #shown = 0; /* the time at the right edge */
    #extents = [];
    #nodes = [];

    constructor(canvas) {
        this.#canvas = canvas;
        this.#context = canvas.getContext('2d');
    }

    /** The page has another size or other colours. */
    measure() {
        const style = getComputedStyle(this.#canvas);
        const number = (name) => parseFloat(style.getPropertyValue(name));
        const [row, left, top, lane] = ['--row', '--lane-left', '--lane-top', '--lane'].map(number);
        this.#layout = { row, left, top, lane };
        for (const name of COLOURS) this.#colours[name] = style.getPropertyValue(`--${name}`).trim();
        const { clientWidth: width, clientHeight: height } = this.#canvas;
        const scale = Math.min(2, devicePixelRatio || 1);
        this.#size = { width, height };
        this.#canvas.width = Math.round(width * scale);
        this.#canvas.height = Math.round(height * scale);
        this.#context.setTransform(scale, 0, 0, scale, 0, 0);
        this.#hatch = this.#pattern(scale);
    }

    /** Stripes, for what is masked. */
    #pattern(scale) {
        const tile = document.createElement('canvas');
        tile.width = tile.height = 6 * scale;
        const c = tile.getContext('2d');
        c.scale(scale, scale);
        c.strokeStyle = this.#colours.panel;
        c.lineWidth = 1.6;
        c.beginPath();
        for (const x of [-6, 0, 6]) {
            c.moveTo(x, 6);
            c.lineTo(x + 6, 0);
        }
        c.stroke();
        const pattern = this.#context.createPattern(tile, 'repeat');
        pattern.setTransform(new DOMMatrix().scale(1 / scale));
        return pattern;
    }

    reset() {
        this.#shown = 0;
    }

    /** Which nodes stand in which rows. */
    arrange(nodes) {
        this.#nodes = nodes;
        this.#extents = extentsOf(nodes);
    }

    /** Draws the time up to `now`. True if it has not come to rest: the next frame would be another. */
    draw(now, { mode, calm, scrolled }) {
        this.#scrolled = scrolled;
        this.#swell = calm ? 0 : now / 260;
        const wanted = SPANS_MS[mode] ?? this.#span;
        this.#span = calm ? wanted : approach(this.#span, wanted, 1);
        const near = now < this.#shown || now - this.#shown < 60;
        this.#shown = calm || near ? now : this.#shown + (now - this.#shown) * 0.2;
        const c = this.#context;
        c.clearRect(0, 0, this.#size.width, this.#size.height);
        this.#axis(c);
        c.save();
        c.beginPath();
        c.rect(this.#layout.left, AXIS, this.#size.width - this.#layout.left, this.#size.height - AXIS);
        c.clip();
        this.#waters(c);
        this.#tasks(c);
        c.restore();
        return this.#span !== wanted || this.#shown !== now;
    }

    /** At first the picture is of a shorter time, which begins at its left edge. */
    get #pictured() {
        return Math.min(this.#span, Math.max(this.#span * FIRST, this.#shown));
    }

    #x(time) {
        const { left } = this.#layout;
        const first = Math.max(0, this.#shown - this.#pictured);
        return left + 8 + (this.#size.width - left - 8 - MARGIN) * ((time - first) / this.#pictured);
    }

    #y(index) {
        return AXIS + index * this.#layout.row - this.#scrolled;
    }

    /** On a narrow page a row has its name above its lane, and nothing may run through that. */
    get #stacked() {
        return this.#layout.top > 20;
    }

    #visible(index) {
        const y = this.#y(index);
        return y + this.#layout.row > 0 && y < this.#size.height;
    }

    /* ---- time ------------------------------------------------------------------------------------------ */

    #axis(c) {
        const width = this.#size.width - this.#layout.left;
        const step = STEPS_MS.find((ms) => (ms / this.#pictured) * width >= 56) ?? 5000;
        const first = Math.max(0, Math.ceil((this.#shown - this.#pictured) / step) * step);
        c.font = '11px ' + FONT;
        c.textAlign = 'center';
        for (let time = first; time <= this.#shown; time += step) {
            const x = this.#x(time);
            c.fillStyle = this.#colours.line;
            c.fillRect(Math.round(x), AXIS - 4, 1, this.#size.height);
            if (x < this.#layout.left + 16) continue;
            c.fillStyle = this.#colours.quiet;
            c.fillText(step < 1000 ? `${(time / 1000).toFixed(2)} s` : `${time / 1000} s`, x, AXIS - 9);
        }
        this.#nowLine(c);
    }

    #nowLine(c) {
        const x = Math.round(this.#x(this.#shown));
        c.fillStyle = this.#colours.surface;
        c.globalAlpha = 0.45;
        c.fillRect(x, AXIS - 4, 1, this.#size.height);
        c.globalAlpha = 1;
    }

    /* ---- regions --------------------------------------------------------------------------------------- */

    #waters(c) {
        this.#nodes.forEach((node, i) => {
            if (node.what !== 'region') return;
            const top = this.#y(i);
            const bottom = this.#y(this.#extents[i] + 1);
            if (bottom < 0 || top > this.#size.height) return;
            if (!this.#stacked) this.#basin(c, node, top, bottom);
            if (this.#visible(i)) this.#surface(c, node, top);
            this.#cascade(c, node, top, bottom);
        });
    }

    /** What is in a region is in its water, from its opening to its end. */
    #basin(c, node, top, bottom) {
        const from = Math.max(this.#x(node.from), this.#layout.left - 8);
        const to = this.#x(node.ended ?? this.#shown);
        c.fillStyle = this.#colours.water;
        c.globalAlpha = node.level === 1 ? 0.05 : 0.09;
        c.beginPath();
        c.roundRect(from, top + 3, Math.max(0, to - from), bottom - top - 6, 6);
        c.fill();
        c.globalAlpha = 1;
    }

    /** The tide of one region: it falls when the region closes, and is still afterwards. */
    #surface(c, node, top) {
        const { top: above, lane } = this.#layout;
        const bed = top + above + lane - 2;
        const from = Math.max(this.#layout.left - 4, this.#x(node.from));
        const to = this.#x(this.#shown);
        const edges = node.spans.map((span) => ({ x: this.#x(span.from), level: LEVELS[span.phase] ?? 0 }));
        c.beginPath();
        for (let x = from; x < to + 3; x += 3) {
            const px = Math.min(x, to);
            const level = levelAt(edges, px);
            const ripple = Math.sin((px - to) / 9 + this.#swell) * 1.3 * (level > 0.1 ? level : 0);
            c.lineTo(px, bed - level * (lane - 6) + ripple);
        }
        c.strokeStyle = this.#colours.surface;
        c.lineWidth = 1.5;
        c.stroke();
        c.lineTo(to, bed);
        c.lineTo(from, bed);
        c.fillStyle = this.#colours.water;
        c.globalAlpha = 0.3;
        c.fill();
        c.globalAlpha = 1;
        if (!node.live) this.#ending(c, node, bed - lane / 2, this.#x(node.ended));
    }

    /** From the region where a cancel began down to all that it reached. */
    #cascade(c, node, top, bottom) {
        for (const { type, time } of node.marks) {
            if (type !== 'asked' && type !== 'forced') continue;
            const x = this.#x(time);
            if (x < this.#layout.left) continue;
            c.fillStyle = type === 'asked' ? this.#colours.CancelRequested : this.#colours.bad;
            const above = this.#stacked ? top + this.#layout.top : top + 7;
            c.globalAlpha = 0.5;
            c.fillRect(x - 0.5, above, 1, this.#stacked ? this.#layout.lane - 2 : bottom - above - 7);
            c.globalAlpha = 1;
            this.#triangle(c, x, above);
        }
    }

    /* ---- tasks ----------------------------------------------------------------------------------------- */

    #tasks(c) {
        this.#nodes.forEach((node, i) => {
            if (node.what === 'task' && this.#visible(i)) this.#task(c, node, this.#y(i));
        });
    }

    #task(c, node, top) {
        const middle = top + this.#layout.top + this.#layout.lane / 2;
        const from = Math.max(this.#layout.left - 8, this.#x(node.from));
        const to = this.#x(node.ended ?? this.#shown);
        if (to >= this.#layout.left) this.#bar(c, node, from, Math.max(to, from + 4), middle);
        this.#marks(c, node, middle);
        if (node.live) this.#head(c, node, to, middle);
        else this.#ending(c, node, middle, to);
    }

    #bar(c, node, from, to, middle) {
        const top = middle - BAR / 2;
        c.save();
        c.beginPath();
        c.roundRect(from, top, to - from, BAR, BAR / 2);
        c.clip();
        node.spans.forEach((span, i) => {
            const x = this.#x(span.from);
            const next = node.spans[i + 1];
            c.fillStyle = this.#colours[span.phase] ?? this.#colours.quiet;
            c.fillRect(x, top, Math.max(2.5, (next ? this.#x(next.from) : to) - x), BAR);
        });
        this.#beats(c, node, top);
        this.#masks(c, node, top);
        c.restore();
    }

    #beats(c, node, top) {
        c.fillStyle = this.#colours.panel;
        c.globalAlpha = 0.4;
        for (const time of node.polls) c.fillRect(this.#x(time), top, 1, BAR);
        c.globalAlpha = 1;
    }

    /**
     * Only as long as there is something to hold back: one that has acknowledged is masked because it cleans
     * up.
     */
    #masks(c, node, top) {
        const acked = node.spans.find(({ phase }) => ACKED.has(phase))?.from ?? Infinity;
        c.fillStyle = this.#hatch;
        c.globalAlpha = 0.8;
        for (const { from, to } of node.masks) {
            const x = this.#x(from);
            const end = this.#x(Math.min(to ?? this.#shown, acked));
            if (end > x) c.fillRect(x, top, end - x, BAR);
        }
        c.globalAlpha = 1;
    }

    #marks(c, node, middle) {
        for (const { type, time } of node.marks) {
            const x = this.#x(time);
            if (x < this.#layout.left) continue;
            c.fillStyle = type === 'asked' ? this.#colours.CancelRequested : this.#colours.bad;
            if (type === 'asked') this.#triangle(c, x, middle - BAR / 2 - 7);
            if (type === 'forced') this.#diamond(c, x, middle - BAR / 2 - 5);
            if (type === 'leaked') this.#drop(c, x, middle + BAR / 2 + 5);
        }
    }

    #head(c, node, x, y) {
        c.fillStyle = this.#colours[node.phase] ?? this.#colours.quiet;
        c.globalAlpha = 0.25;
        disc(c, x, y, 9);
        c.globalAlpha = 1;
        disc(c, x, y, 5.5);
        c.fillStyle = this.#colours.panel;
        disc(c, x, y, 2);
    }

    #ending(c, node, y, x) {
        if (x < this.#layout.left) return;
        const bad = node.abandoned > 0 || node.status === 'failed' || node.status === 'faulted';
        c.fillStyle = bad ? this.#colours.bad : this.#colours.quiet;
        if (node.what === 'task') disc(c, x, y, 3.5);
        c.font = '11px ' + FONT;
        c.textAlign = 'left';
        c.fillText(node.abandoned > 0 && node.what === 'task' ? 'abandoned' : node.status, x + 9, y + 4);
    }

    #triangle(c, x, y) {
        c.beginPath();
        c.moveTo(x - 4, y);
        c.lineTo(x + 4, y);
        c.lineTo(x, y + 6);
        c.fill();
    }

    #diamond(c, x, y) {
        c.beginPath();
        c.moveTo(x, y - 4);
        c.lineTo(x + 4, y);
        c.lineTo(x, y + 4);
        c.lineTo(x - 4, y);
        c.fill();
    }

    #drop(c, x, y) {
        disc(c, x, y, 2.5);
        this.#triangle(c, x, y - 5);
    }
}

const FONT = '"DejaVu Sans Condensed", -apple-system, "Segoe UI", Roboto, sans-serif';

function disc(c, x, y, radius) {
    c.beginPath();
    c.arc(x, y, radius, 0, 2 * Math.PI);
    c.fill();
}

function approach(value, wanted, least) {
    return Math.abs(wanted - value) < least ? wanted : value + (wanted - value) * 0.14;
}

/** The level of the water at x: it falls from one state's level to the next over EBB_PX. */
function levelAt(edges, x) {
    let level = edges[0]?.level ?? 0;
    for (const edge of edges) {
        if (edge.x > x) break;
        const t = Math.min(1, (x - edge.x) / EBB_PX);
        level += (edge.level - level) * t * t * (3 - 2 * t);
    }
    return level;
}

/** For each row the last row of what is in it. */
function extentsOf(nodes) {
    const extents = nodes.map((_, i) => i);
    const above = [];
    nodes.forEach((node, i) => {
        while (above.length > 0 && nodes[above.at(-1)].level >= node.level) above.pop();
        for (const j of above) extents[j] = i;
        above.push(i);
    });
    return extents;
}
