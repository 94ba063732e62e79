/*
 * `ebb files` as a child, for as long as a test needs it.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

import { Guard } from './guard.js';

const STDERR_KEPT = 4000;

/**
 * Starts `ebb files DIR --port 0`. It is gone at the latest when this process is, and doesn't keep it
 * running.
 * @param {{ ebb: string, dir: string, timeoutMs?: number }} options
 * @returns {Promise<{ url: string, pid: number, stop(): Promise<void> }>} the URL ends with a slash; stop()
 *     rejects if the server did not end in order, and may be called twice
 */
export async function serve({ ebb, dir, timeoutMs = 30000 }) {
    const server = new Server(ebb, ['files', dir, '--port', '0'], timeoutMs);
    try {
        const url = await server.url();
        return { url, pid: server.pid, stop: () => server.stop() };
    } catch (error) {
        await server.kill();
        throw error;
    }
}

/** One process, which ends exactly once: when `exited` resolves. */
class Server {
    #child;
    #guard = new Guard();
    #command;
    #timeoutMs;
    #exited;
    #stopping;
    #stdout = '';
    #stderr = '';

    constructor(ebb, args, timeoutMs) {
        this.#command = [ebb, ...args].join(' ');
        this.#timeoutMs = timeoutMs;
        this.#child = spawn(ebb, args, {
            detached: true,
            env: this.#guard.env,
            stdio: ['ignore', 'pipe', 'pipe'],
        });
        this.#guard.watch(this.#child);
        this.#exited = once(this.#child, 'exit');
        this.#exited.catch(() => {});
        this.#child.stdout.on('data', (text) => (this.#stdout += text));
        this.#child.stderr.on('data', (text) => (this.#stderr = (this.#stderr + text).slice(-STDERR_KEPT)));
    }

    get pid() {
        return this.#child.pid;
    }

    async url() {
        const line = await this.#within(Promise.race([this.#line(), this.#ended()]), 'its line with the URL');
        if (!/^http:\/\/127\.0\.0\.1:\d+\/$/.test(line))
            throw this.#error(`its first line is not http://127.0.0.1:PORT/ but '${line}'`);
        return line;
    }

    stop() {
        this.#stopping ??= this.#stop();
        return this.#stopping;
    }

    async kill() {
        this.#child.ref();
        await this.#guard.release();
        await this.#exited.catch(() => {});
    }

    async #stop() {
        this.#child.kill('SIGTERM');
        try {
            const [code, signal] = await this.#within(this.#exited, 'its end after SIGTERM');
            if (code !== 0)
                throw this.#error(`it ended with ${signal ?? `code ${code}`} after SIGTERM`);
        } finally {
            await this.kill();
        }
    }

    async #line() {
        while (!this.#stdout.includes('\n'))
            await once(this.#child.stdout, 'data');
        return this.#stdout.slice(0, this.#stdout.indexOf('\n'));
    }

    async #ended() {
        const [code, signal] = await this.#exited;
        throw this.#error(`it ended at once with ${signal ?? `code ${code}`}`);
    }

    async #within(promise, what) {
        let timer;
        const late = new Promise((resolve, reject) => {
            const error = () => this.#error(`timed out after ${this.#timeoutMs} ms: ${what}`);
            timer = setTimeout(() => reject(error()), this.#timeoutMs);
        });
        return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
    }

    #error(text) {
        return new Error(`${this.#command}: ${text}${this.#stderr && `\nit wrote:\n${this.#stderr}`}`);
    }
}
