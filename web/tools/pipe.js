/*
 * The Chrome DevTools Protocol over the two pipes of --remote-debugging-pipe: JSON messages, each ended by a
 * NUL. A message with our id is an answer; one without is an event, of the browser or of one of its sessions
 * (a page, a worker).
 */

/**
 * Every command has exactly one end: its answer, its time limit, or the end of its session or of the pipe.
 * The pipes don't keep Node running; the time limit of a command under way does.
 */
export class Pipe {
    #out;
    #chunks = [];
    #lastId = 0;
    #pending = new Map();
    #listeners = new Map();
    #gone = '';

    /**
     * @param {import('node:stream').Writable} out
     * @param {import('node:stream').Readable} into
     */
    constructor(out, into) {
        this.#out = out;
        /* A pipe breaks when the browser ends, and its end has more to say: it calls end(). */
        out.on('error', () => {});
        into.on('error', () => {});
        into.on('data', (chunk) => this.#take(chunk));
    }

    /**
     * @param {string} method
     * @param {object} [params]
     * @param {{ session?: string, timeoutMs?: number }} [options]
     * @returns {Promise<any>} the result; rejects with what the browser says, or with a TimeoutError
     */
    send(method, params = {}, { session = '', timeoutMs = 30000 } = {}) {
        if (this.#gone)
            return Promise.reject(new Error(`${method}: ${this.#gone}`));
        const id = ++this.#lastId;
        const message = { id, method, params, ...(session && { sessionId: session }) };
        return new Promise((resolve, reject) => {
            const late = () => this.#settle(id, timeoutError(timeoutMs, method));
            const timer = setTimeout(late, timeoutMs);
            this.#pending.set(id, { method, session, timer, resolve, reject });
            this.#out.write(`${JSON.stringify(message)}\0`);
        });
    }

    /** Calls `listener(method, params)` for each event of the session; '' is the browser's own. */
    listen(session, listener) {
        this.#listeners.set(session, listener);
    }

    /** Rejects what is under way in a session that can't answer any more. */
    endSession(session, why) {
        for (const [id, command] of this.#pending)
            if (command.session === session)
                this.#settle(id, new Error(`${command.method}: ${why}`));
    }

    /** The browser is gone or about to be. */
    end(why) {
        this.#gone ||= why;
        for (const [id, command] of this.#pending)
            this.#settle(id, new Error(`${command.method}: ${this.#gone}`));
    }

    #settle(id, error, result) {
        const command = this.#pending.get(id);
        if (!command)
            return;
        this.#pending.delete(id);
        clearTimeout(command.timer);
        if (error)
            command.reject(error);
        else
            command.resolve(result);
    }

    /* A screenshot comes in many chunks: they are joined once, when the NUL is there. */
    #take(chunk) {
        let start = 0;
        for (let end; (end = chunk.indexOf(0, start)) >= 0; start = end + 1) {
            this.#chunks.push(chunk.subarray(start, end));
            const text = Buffer.concat(this.#chunks).toString();
            this.#chunks = [];
            this.#dispatch(JSON.parse(text));
        }
        this.#chunks.push(chunk.subarray(start));
    }

    #dispatch({ id, error, result, method, params, sessionId = '' }) {
        if (id === undefined) {
            this.#listeners.get(sessionId)?.(method, params);
            return;
        }
        const sent = this.#pending.get(id)?.method;
        this.#settle(id, error && new Error(`${sent}: ${error.message} ${error.data ?? ''}`.trim()), result);
    }
}

/** @returns {Error} one that callers know by its name, to add what the page said */
export function timeoutError(timeoutMs, what) {
    const error = new Error(`timed out after ${timeoutMs} ms: ${what}`);
    error.name = 'TimeoutError';
    return error;
}
