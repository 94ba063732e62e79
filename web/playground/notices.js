import { h, setText } from './element.js';

const MOST = 3;
const STAYS_MS = 9000;
const GATHER_MS = 500;
const NAMED = 3;

/** What the runtime refused, as something to read; and, for those who listen, what has ended. */
export class Notices {
    #element;
    #said;
    #ended = [];
    #timer;

    constructor(element, said) {
        this.#element = element;
        this.#said = said;
    }

    /** An error of the runtime's, with its code. */
    refused(error) {
        this.#show(error.code ?? error.name, error.message, 'bad');
    }

    tell(title, text) {
        this.#show(title, text, 'plain');
    }

    #show(title, text, tone) {
        const close = h('button', { type: 'button', 'aria-label': `Dismiss ${title}` }, '×');
        close.className = 'dismiss';
        const words = [h('code', {}, title), h('span', {}, text)];
        const notice = h('div', { className: `notice ${tone}` }, ...words, close);
        close.addEventListener('click', () => notice.remove());
        this.#element.append(notice);
        while (this.#element.children.length > MOST) this.#element.firstChild.remove();
        this.#leave(notice);
    }

    /** It stays as long as somebody is at it. */
    #leave(notice) {
        setTimeout(() => {
            if (notice.matches(':hover, :focus-within')) this.#leave(notice);
            else notice.remove();
        }, STAYS_MS);
    }

    reset() {
        this.#element.replaceChildren();
    }

    /** Says the ends of a moment in one sentence. */
    ended(node) {
        const abandoned = node.abandoned > 0 && node.what === 'task';
        this.#ended.push(`${node.name} ${abandoned ? 'was abandoned' : `ended: ${node.status}`}`);
        this.#timer ??= setTimeout(() => this.#say(), GATHER_MS);
    }

    #say() {
        const more = this.#ended.length - NAMED;
        setText(this.#said, this.#ended.slice(0, NAMED).join('; ') + (more > 0 ? `; and ${more} more` : ''));
        this.#ended = [];
        this.#timer = undefined;
    }
}
