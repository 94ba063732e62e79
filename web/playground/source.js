import { able, h, setAttribute, setText } from './element.js';

/** What a scene is called with; its source is the body of such a function. */
const GIVEN = '{ run, say, sleep }';

let compiled = 0;

/** The body of a function as it stands in the file, without the indentation that it has there. */
export function bodyOf(fn) {
    const lines = String(fn).split('\n').slice(1, -1);
    return lines.map((line) => line.replace(/^ {4}/, '')).join('\n');
}

/** An error in the text of a scene: `line` is of that text, from 1. */
export class Mistake extends Error {
    constructor(message, line) {
        super(message);
        this.line = line;
    }
}

/**
 * Makes a function of a text: a script of this page, which the page's policy allows, and no network. The text begins
 * in the first line of the script, so lines are the same in both.
 * @returns {Promise<{ play: Function, lineOf: (error: Error) => number | undefined }>} or a Mistake
 */
export async function compile(text) {
    const name = `scene${++compiled}`;
    const code = `globalThis.${name} = async (${GIVEN}) => {${text}\n};`;
    const url = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
    const script = h('script', { src: url });
    let mistake;
    const heard = (event) => {
        if (event.filename !== url) return;
        event.preventDefault();
        mistake = new Mistake(event.message.replace(/^Uncaught /, ''), event.lineno);
    };
    addEventListener('error', heard);
    await new Promise((resolve) => {
        script.onload = script.onerror = resolve;
        document.head.append(script);
    });
    removeEventListener('error', heard);
    script.remove();
    URL.revokeObjectURL(url);
    const play = globalThis[name];
    delete globalThis[name];
    if (play === undefined) throw mistake ?? new Mistake('the text is no body of a function');
    return { play, lineOf: (error) => lineIn(error, url) };
}

/** The line where it was thrown, if that is in the script of this URL. */
function lineIn(error, url) {
    const stack = String(error?.stack ?? '');
    const at = stack.indexOf(`${url}:`);
    return at < 0 ? undefined : Number(/^\d+/.exec(stack.slice(at + url.length + 1))?.[0]);
}

/** The source of a scene, which can be edited and run. What was edited is kept for each scene until it is reset. */
export class Source {
    #text;
    #lines;
    #parts;
    #listener;
    #scene;
    #edited = new Map();

    /**
     * @param {(id: string) => HTMLElement} at
     * @param {{ run: () => void }} listener
     */
    constructor(at, listener) {
        this.#listener = listener;
        this.#text = at('source');
        this.#lines = at('source-lines');
        this.#parts = { of: at('source-of'), reset: at('source-reset'), problem: at('source-problem') };
        at('source-run').addEventListener('click', () => listener.run());
        this.#parts.reset.addEventListener('click', () => this.#reset());
        this.#text.addEventListener('input', () => this.#changed());
        this.#text.addEventListener('scroll', () => this.#scrolled(), { passive: true });
        this.#text.addEventListener('keydown', (event) => this.#pressed(event));
    }

    get scene() {
        return this.#scene;
    }

    get text() {
        return this.#text.value;
    }

    show(scene) {
        this.#scene = scene;
        setText(this.#parts.of, scene.label);
        this.#write(this.#edited.get(scene) ?? scene.source);
    }

    /** Says what is wrong, and where; undefined: nothing is. */
    problem(mistake) {
        const { line, message } = mistake ?? {};
        setText(this.#parts.problem, mistake === undefined ? '' : `${line ? `Line ${line}: ` : ''}${message}`);
        setAttribute(this.#text, 'aria-invalid', mistake === undefined ? undefined : 'true');
        [...this.#lines.children].forEach((each, i) => setAttribute(each, 'class', i + 1 === line ? 'wrong' : undefined));
        if (line) this.#reveal(line);
    }

    #write(text) {
        this.#text.value = text;
        this.#text.scrollTop = 0;
        this.#number();
        this.problem(undefined);
    }

    #changed() {
        if (this.text === this.#scene.source) this.#edited.delete(this.#scene);
        else this.#edited.set(this.#scene, this.text);
        this.#number();
        this.problem(undefined);
    }

    #reset() {
        if (!this.#edited.delete(this.#scene)) return;
        this.#write(this.#scene.source);
        this.#text.focus();
    }

    #pressed(event) {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            this.#listener.run();
        }
    }

    #number() {
        const n = this.text.split('\n').length;
        while (this.#lines.children.length < n) this.#lines.append(h('i', {}, `${this.#lines.children.length + 1}`));
        while (this.#lines.children.length > n) this.#lines.lastChild.remove();
        able(this.#parts.reset, this.#edited.has(this.#scene));
        this.#scrolled();
    }

    #scrolled() {
        this.#lines.scrollTop = this.#text.scrollTop;
    }

    #reveal(line) {
        const height = this.#text.scrollHeight / this.#lines.children.length;
        const top = (line - 1) * height;
        const { scrollTop, clientHeight } = this.#text;
        if (top < scrollTop || top + height > scrollTop + clientHeight) this.#text.scrollTop = top - clientHeight / 2;
    }
}
