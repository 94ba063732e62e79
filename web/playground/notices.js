import { h, setText } from './element.js';

const MOST = 3;
const STAYS_MS = 6000;
const GATHER_MS = 500;
const NAMED = 3;

/** What the runtime refused, as something to read; and, for those who listen, what has ended. */
export class Notices {
    #element;
    #said;
    #ended = [];
    #timer;
    #leaves;

    /** @param {() => void} leaves is called when the notice that had the focus is dismissed */
    constructor(element, said, leaves) {
        this.#element = element;
        this.#said = said;
        this.#leaves = leaves;
    }

    /** An error of the runtime's, with its code. */
    refused(error) {
        this.#show(error.code ?? error.name, error.message, 'bad');
    }

    tell(title, text, tone = 'plain') {
        this.#show(title, text, tone);
    }

    /** The same again takes the place of the one before. */
    #show(title, text, tone) {
        const close = h('button', { type: 'button', 'aria-label': `Dismiss ${title}` }, '×');
        close.className = 'dismiss';
        const words = [h('code', {}, title), h('span', {}, text)];
        const notice = h('div', { className: `notice ${tone}` }, ...words, close);
        close.addEventListener('click', () => this.#dismiss(notice));
        const same = [...this.#element.children].find((one) => one.textContent === notice.textContent);
        same?.remove();
        this.#element.append(notice);
        while (this.#element.children.length > MOST) this.#element.firstChild.remove();
        this.#leave(notice);
    }

    #dismiss(notice) {
        const focused = notice.contains(document.activeElement);
        notice.remove();
        if (focused) this.#leaves();
    }

    dismissAll() {
        for (const notice of [...this.#element.children]) this.#dismiss(notice);
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
