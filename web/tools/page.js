/*
 * One page of a browser that chromium.js started: where it goes, what is run in it, what is pressed in it,
 * and a record of what it said and asked for.
 */
import { writeFile } from 'node:fs/promises';

import { keyEvent } from './keys.js';
import { timeoutError } from './pipe.js';

const DEFAULT_TIMEOUT_MS = 30000;
const POLL_MS = 20;
const VIEWPORT = { width: 1280, height: 800 };
const ATTACH = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true };

/**
 * @typedef {{ type: string, text: string }} Said type: 'log', 'warning', 'error', ... as the page called it;
 *     'exception' for an uncaught error or rejection; 'dialog' for an alert and its like
 */

/**
 * A page and its workers. `console` and `requests` only grow. A session is attached while its page or worker
 * stands still before its first instruction, so neither list misses anything.
 *
 * Every wait ends: with what was waited for, with the page's end, or after `timeoutMs` with an error that
 * says what was waited for and what the page's console said.
 */
export class Page {
    #pipe;
    #session;
    #target;
    #bindings = new Map();
    #waiters = new Set();
    #loaded = new Set();
    #statuses = new Map();
    #viewport;

    /** Use browser.page(). */
    constructor(pipe, session, target, timeoutMs) {
        this.#pipe = pipe;
        this.#session = session;
        this.#target = target;
        /** The limit of each wait; may be set at any time. */
        this.timeoutMs = timeoutMs;
        /** @type {Said[]} */
        this.console = [];
        /** @type {string[]} */
        this.requests = [];
        pipe.listen(session, (method, params) => this.#event(session, method, params));
    }

    static async attach(pipe, targetId, { timeoutMs = DEFAULT_TIMEOUT_MS } = {}) {
        const { sessionId } = await pipe.send('Target.attachToTarget', { targetId, flatten: true });
        const page = new Page(pipe, sessionId, targetId, timeoutMs);
        await page.#watch(sessionId);
        for (const method of ['Page.enable', 'Inspector.enable'])
            await page.#send(method);
        await page.#send('Page.setLifecycleEventsEnabled', { enabled: true });
        await page.viewport(VIEWPORT);
        /* Without it only one page at a time has the focus, and keys go nowhere in the others. */
        await page.#send('Emulation.setFocusEmulationEnabled', { enabled: true });
        return page;
    }

    /** Loads a page; resolves at its load event. An answer of 400 or above is an error. */
    async goto(url) {
        const { loaderId, errorText } = await this.#send('Page.navigate', { url });
        if (loaderId && !errorText)
            await this.#until(() => this.#loaded.has(loaderId), `load of ${url}`);
        const status = this.#statuses.get(loaderId);
        const problem = status >= 400 ? `status ${status}` : errorText;
        if (problem)
            throw new Error(`${url}: ${problem}`);
    }

    /**
     * Runs a function in the page, with arguments that JSON can carry, or evaluates an expression; promises
     * are awaited. What JSON can't carry can't come back either, but for a bigint or a number by itself.
     * @param {Function | string} code
     * @param {...any} args
     */
    evaluate(code, ...args) {
        return this.#evaluate(code, args, this.timeoutMs);
    }

    /**
     * Asks again and again until the answer is true; gives that answer. A throw is a "not yet": the element
     * may still be missing, the page may be between two documents.
     * @param {Function | string} code
     * @param {string} what is waited for, for the error
     * @param {number} [timeoutMs]
     * @param {...any} args
     */
    async waitFor(code, what, timeoutMs = this.timeoutMs, ...args) {
        const end = Date.now() + timeoutMs;
        let last;
        do {
            const ask = this.#evaluate(code, args, Math.max(end - Date.now(), 1));
            const answer = await ask.catch((error) => void (last = error.name === 'TimeoutError' ? last : error));
            if (answer)
                return answer;
            await delay(POLL_MS);
        } while (Date.now() < end);
        const why = last ? `\nit threw: ${last.message}` : '';
        throw this.#late(timeoutMs, `${what}${why}`);
    }

    /** Clicks in the middle of an element, with the mouse, once it stands still and nothing covers it. */
    async click(selector) {
        const { x, y } = await this.#place(selector);
        const at = { x, y, button: 'left', clickCount: 1 };
        await this.#send('Input.dispatchMouseEvent', { x, y, type: 'mouseMoved' });
        await this.#send('Input.dispatchMouseEvent', { ...at, type: 'mousePressed', buttons: 1 });
        await this.#send('Input.dispatchMouseEvent', { ...at, type: 'mouseReleased' });
    }

    /** Presses a key and lets go: 'Enter', 'a', 'Shift+Tab', 'Control+a'. */
    async press(key) {
        const event = keyEvent(key);
        await this.#send('Input.dispatchKeyEvent', { ...event, type: event.text ? 'keyDown' : 'rawKeyDown' });
        await this.#send('Input.dispatchKeyEvent', { ...event, text: undefined, type: 'keyUp' });
    }

    /** Presses one key after the other. */
    async type(text) {
        for (const character of text)
            await this.press(character);
    }

    /** The page's size in CSS pixels, and how many pixels of a screenshot make one of them. */
    async viewport({ width, height, scale = 1 }) {
        this.#viewport = { width, height, scale };
        const metrics = { width, height, deviceScaleFactor: scale, mobile: false };
        await this.#send('Emulation.setDeviceMetricsOverride', metrics);
    }

    /**
     * Writes a PNG of what is visible, at another size if one is given.
     * @param {string} path
     * @param {{ width: number, height: number, scale?: number }} [size]
     */
    async screenshot(path, size) {
        const before = this.#viewport;
        await this.viewport(size ?? before);
        const { data } = await this.#send('Page.captureScreenshot', { format: 'png' });
        await this.viewport(before);
        await writeFile(path, Buffer.from(data, 'base64'));
    }

    /**
     * What the CSS media features are from now on; those that aren't named are the browser's own again.
     * @param {Record<string, string>} features `{ 'prefers-color-scheme': 'dark' }`
     */
    async emulateMedia(features) {
        const list = Object.entries(features).map(([name, value]) => ({ name, value }));
        await this.#send('Emulation.setEmulatedMedia', { features: list });
    }

    /** 'frozen': its tasks stand still, as those of a tab that the browser has put aside; 'active': they go on. */
    async lifecycle(state) {
        await this.#send('Page.setWebLifecycleState', { state });
    }

    /** Brings it before the other pages of its window, which are hidden then. */
    async bringToFront() {
        await this.#send('Page.bringToFront');
    }

    /** Says by itself no more that it has the focus, so that it can be hidden. */
    async releaseFocus() {
        await this.#send('Emulation.setFocusEmulationEnabled', { enabled: false });
    }

    /** Collects all garbage, with what only our record of the console kept alive. */
    async collectGarbage() {
        await this.#send('Runtime.discardConsoleEntries');
        await this.#send('HeapProfiler.collectGarbage');
    }

    /** The bytes of the JavaScript heap in use, garbage included: collect it first. */
    async heapUsed() {
        return (await this.#send('Runtime.getHeapUsage')).usedSize;
    }

    /** Makes `globalThis[name](text)` in the page, from its next document on too, call `fn(text)` here. */
    async expose(name, fn) {
        this.#bindings.set(name, fn);
        await this.#send('Runtime.addBinding', { name });
    }

    /** The requests that went to another origin than this URL's. */
    foreignRequests(url) {
        const { host } = new URL(url);
        const local = (asked) => !/^(https?|wss?):$/.test(asked.protocol) || asked.host === host;
        return this.requests.filter((request) => !local(new URL(request)));
    }

    async close() {
        await this.#pipe.send('Target.closeTarget', { targetId: this.#target });
    }

    /** What the console said, as text for an error message. */
    consoleText() {
        const lines = this.console.map(({ type, text }) => `    ${type}: ${text.replace(/\n/g, '\n    ')}`);
        return `the page's console said${lines.length ? `:\n${lines.join('\n')}` : ' nothing.'}`;
    }

    async #send(method, params, timeoutMs = this.timeoutMs, what = method) {
        try {
            return await this.#pipe.send(method, params, { session: this.#session, timeoutMs });
        } catch (error) {
            throw error.name === 'TimeoutError' ? this.#late(timeoutMs, what) : error;
        }
    }

    #late(timeoutMs, what) {
        return timeoutError(timeoutMs, `${what}\n${this.consoleText()}`);
    }

    async #evaluate(code, args, timeoutMs) {
        const given = args.map((arg) => JSON.stringify(arg) ?? 'undefined');
        const expression = typeof code === 'function' ? `(${code})(${given.join(', ')})` : code;
        const params = { expression, awaitPromise: true, returnByValue: true };
        const what = `evaluation of ${shortened(expression)}`;
        const { result, exceptionDetails } = await this.#send('Runtime.evaluate', params, timeoutMs, what);
        if (exceptionDetails)
            throw new Error(exceptionText(exceptionDetails));
        return fromRemote(result);
    }

    /* A throw is a "not yet" here too: the page may be between two documents. */
    async #place(selector) {
        const end = Date.now() + this.timeoutMs;
        let problem = 'the page does not answer';
        do {
            const ask = this.#evaluate(placeInPage, [selector], Math.max(end - Date.now(), 1));
            const found = await ask.catch((error) =>
                ({ problem: error.name === 'TimeoutError' ? problem : error.message }));
            if (!found.problem)
                return found;
            problem = found.problem;
            await delay(POLL_MS);
        } while (Date.now() < end);
        throw this.#late(this.timeoutMs, `'${selector}' to be there to click: ${problem}`);
    }

    /* Waits for something that an event brings. */
    #until(isSo, what) {
        return new Promise((resolve, reject) => {
            const end = (settle, value) => {
                clearTimeout(waiter.timer);
                this.#waiters.delete(waiter);
                settle(value);
            };
            const late = () => end(reject, this.#late(this.timeoutMs, what));
            const waiter = {
                check: () => isSo() && end(resolve),
                fail: (why) => end(reject, new Error(`${what}: ${why}`)),
                timer: setTimeout(late, this.timeoutMs),
            };
            this.#waiters.add(waiter);
            waiter.check();
        });
    }

    /* Sent without waiting for one answer before the next question: the order is kept, and the page or worker
     * runs on only after the last of them. */
    async #watch(session) {
        const { timeoutMs } = this;
        const send = (method, params) => this.#pipe.send(method, params, { session, timeoutMs });
        await Promise.all([
            send('Runtime.enable'),
            send('Log.enable').catch(() => {}), /* a worker has no log of its own */
            send('Network.enable'),
            send('Target.setAutoAttach', ATTACH),
            send('Runtime.runIfWaitingForDebugger'),
        ]);
    }

    /* A worker can end before all of it has been asked: then there is nothing left to be missed. */
    #attached({ sessionId }) {
        this.#pipe.listen(sessionId, (method, params) => this.#event(sessionId, method, params));
        this.#watch(sessionId).catch(() => {});
    }

    #event(session, method, params) {
        Page.#events[method]?.(this, params, session);
        for (const waiter of this.#waiters)
            waiter.check();
    }

    #gone(why) {
        this.#pipe.endSession(this.#session, why);
        for (const waiter of this.#waiters)
            waiter.fail(why);
    }

    /* What is done with each event that is not ignored. */
    static #events = {
        'Runtime.consoleAPICalled': (page, { type, args }) =>
            page.console.push({ type, text: args.map(remoteText).join(' ') }),
        'Runtime.exceptionThrown': (page, { exceptionDetails }) =>
            page.console.push({ type: 'exception', text: exceptionText(exceptionDetails) }),
        'Log.entryAdded': (page, { entry }) =>
            page.console.push({ type: entry.level, text: [entry.text, entry.url].filter(Boolean).join(' ') }),
        'Runtime.bindingCalled': (page, { name, payload }) => page.#bindings.get(name)?.(payload),
        'Network.requestWillBeSent': (page, { request }) => page.requests.push(request.url),
        'Network.webSocketCreated': (page, { url }) => page.requests.push(url),
        'Network.webTransportCreated': (page, { url }) => page.requests.push(url),
        'Network.responseReceived': (page, { type, loaderId, response }) =>
            type === 'Document' && page.#statuses.set(loaderId, response.status),
        'Page.lifecycleEvent': (page, { name, loaderId }) => name === 'load' && page.#loaded.add(loaderId),
        'Page.javascriptDialogOpening': (page, { type, message }) => {
            page.console.push({ type: 'dialog', text: `${type}: ${message}` });
            page.#send('Page.handleJavaScriptDialog', { accept: false }).catch(() => {});
        },
        'Target.attachedToTarget': (page, params) => page.#attached(params),
        'Inspector.targetCrashed': (page, params, session) =>
            session === page.#session && page.#gone('the page crashed'),
    };
}

/* Runs in the page. An element that is at the same place two frames later stands still, unless an animation of it or of
 * what is around it has not ended: on a busy machine two frames may show the same moment. */
async function placeInPage(selector) {
    const measure = () => {
        const element = document.querySelector(selector);
        if (!element)
            return { problem: 'there is no such element' };
        element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
        const { left, top, width, height } = element.getBoundingClientRect();
        if (width === 0 || height === 0)
            return { problem: 'it has no size' };
        if (element.disabled)
            return { problem: 'it is disabled' };
        const moving = ({ playState, effect }) => playState === 'running' && effect.target?.contains(element) &&
            Number.isFinite(effect.getComputedTiming().endTime);
        if (document.getAnimations().some(moving))
            return { problem: 'it moves' };
        const [x, y] = [left + width / 2, top + height / 2];
        const hit = document.elementFromPoint(x, y);
        if (hit && (element.contains(hit) || hit.closest('label')?.control === element))
            return { x, y };
        return { problem: hit ? `${hit.cloneNode().outerHTML} covers it` : 'it is outside of the window' };
    };
    const before = measure();
    await new Promise((end) => requestAnimationFrame(() => requestAnimationFrame(end)));
    const now = measure();
    const moves = !before.problem && !now.problem && (before.x !== now.x || before.y !== now.y);
    return before.problem ? before : moves ? { problem: 'it moves' } : now;
}

function delay(ms) {
    return new Promise((resolve) => setTimeout(resolve, ms));
}

function shortened(text) {
    const line = text.replace(/\s+/g, ' ');
    return line.length > 200 ? `${line.slice(0, 200)}...` : line;
}

function exceptionText({ text, exception, url, lineNumber }) {
    if (exception?.subtype === 'error')
        return exception.description;
    const where = url ? ` (${url}:${lineNumber + 1})` : '';
    return `${text}${exception ? ` ${remoteText(exception)}` : ''}${where}`;
}

function remoteText(remote) {
    if (remote.type === 'string')
        return remote.value;
    if (remote.preview && (!remote.subtype || remote.subtype === 'array'))
        return previewText(remote.preview);
    return remote.description ?? remote.unserializableValue ?? String(remote.value);
}

function previewText({ description, subtype, properties, overflow }) {
    const fields = properties.map(({ name, value }) => (subtype ? value : `${name}: ${value}`));
    const inner = [...fields, ...(overflow ? ['...'] : [])].join(', ');
    return subtype ? `[${inner}]` : `${description} {${inner}}`;
}

function fromRemote({ type, value, unserializableValue }) {
    if (unserializableValue === undefined)
        return value;
    return type === 'bigint' ? BigInt(unserializableValue.slice(0, -1)) : Number(unserializableValue);
}
