/*
 * Debian's Chromium, driven from Node without any package: the browser is a child process, the protocol runs
 * over two pipes. There is no port that another process could connect to or that could be taken.
 *
 *     const browser = await Chromium.start();
 *     try {
 *         const page = await browser.page();
 *         await page.goto(url);
 *         await page.click('#spawn');
 *         await page.waitFor(() => document.querySelector('.task'), 'a task in the list');
 *     } finally {
 *         await browser.close();
 *     }
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Guard } from './guard.js';
import { Page } from './page.js';
import { Pipe } from './pipe.js';

const ARGS = [
    '--remote-debugging-pipe',
    '--headless=new',
    /* Root has no sandbox, and a container often has nothing to make one of. The pages are ours. */
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--disable-default-apps',
    /* Nothing but this machine can be reached, whatever a page or the browser itself asks for. */
    '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
    '--lang=en-US',
    '--force-color-profile=srgb',
    '--hide-scrollbars',
];

/* A page must not run slower because another one is in front of it. */
const UNTHROTTLED = [
    '--disable-background-timer-throttling',
    '--disable-backgrounding-occluded-windows',
    '--disable-renderer-backgrounding',
];

const STDERR_KEPT = 4000;

/**
 * One browser process. All that it writes is below `dir`, which is gone with it: after close(), and also when
 * this process ends without it.
 */
export class Chromium {
    #child;
    #guard;
    #pipe;
    #closing;
    #stderr = '';

    /**
     * The first start of a browser on a loaded machine can take many seconds and has been seen to fail, so
     * the time limit is generous and there is a second try.
     * @param {{ args?: string[], executable?: string, timeoutMs?: number, throttled?: boolean }} [options]
     *     throttled: hidden pages run slower, as they do for users
     * @returns {Promise<Chromium>}
     */
    static async start(options = {}) {
        try {
            return await Chromium.#launch(options);
        } catch (error) {
            if (error.code === 'ENOENT')
                throw notInstalled(options.executable, error);
            return await Chromium.#launch(options).catch((again) => {
                throw new Error(`chromium did not start, twice: ${again.message}`, { cause: error });
            });
        }
    }

    static async #launch({ args = [], executable = 'chromium', timeoutMs = 60000, throttled = false }) {
        const browser = new Chromium(executable, throttled ? args : [...UNTHROTTLED, ...args]);
        try {
            await browser.#spawned();
            await browser.#pipe.send('Browser.getVersion', {}, { timeoutMs });
            return browser;
        } catch (error) {
            await browser.close();
            if (!error.code)
                error.message += browser.#lastWords();
            throw error;
        }
    }

    /** Use Chromium.start(). */
    constructor(executable, args) {
        this.dir = mkdtempSync(join(tmpdir(), 'ebb-chromium-'));
        this.#guard = new Guard(this.dir);
        const profile = join(this.dir, 'profile');
        this.#child = spawn(executable, [...ARGS, `--user-data-dir=${profile}`, ...args, 'about:blank'], {
            detached: true,
            env: environment(this.#guard.env, this.dir),
            stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
        });
        this.#guard.watch(this.#child);
        this.#pipe = new Pipe(this.#child.stdio[3], this.#child.stdio[4]);
        this.#child.stderr.on('data', (text) => {
            this.#stderr = (this.#stderr + text).slice(-STDERR_KEPT);
        });
        this.#child.on('exit', (code, signal) => this.#pipe.end(`the browser ended (${signal ?? code})`));
    }

    /** The id of the browser's process, which is also that of the group of all its processes. */
    get pid() {
        return this.#child.pid;
    }

    /**
     * A new page, in a window of its own so that it is visible and paints.
     * @param {{ timeoutMs?: number, newWindow?: boolean }} [options] the limit of each wait in the page; newWindow
     *     false: a tab of the window that is there
     * @returns {Promise<Page>}
     */
    async page({ newWindow = true, ...options } = {}) {
        const target = await this.#pipe.send('Target.createTarget', { url: 'about:blank', newWindow });
        return await Page.attach(this.#pipe, target.targetId, options);
    }

    /**
     * What the browser traces of these categories while `during` runs.
     * @param {string[]} categories
     * @param {() => Promise<T>} during
     * @returns {Promise<{ result: T, events: object[] }>}
     * @template T
     */
    async trace(categories, during) {
        const events = [];
        const complete = new Promise((resolve) => {
            this.#pipe.listen('', (method, params) => {
                if (method === 'Tracing.dataCollected') events.push(...params.value);
                else if (method === 'Tracing.tracingComplete') resolve();
            });
        });
        await this.#pipe.send('Tracing.start', { traceConfig: { includedCategories: categories } });
        const result = await during();
        await this.#pipe.send('Tracing.end');
        await complete;
        return { result, events };
    }

    /** Ends the browser; when it resolves, its processes and its directory are gone. May be called twice. */
    close() {
        this.#closing ??= this.#end();
        return this.#closing;
    }

    /* The profile is thrown away, so there is nothing that the browser should save first. */
    async #end() {
        this.#pipe.end('the browser was closed');
        this.#child.ref();
        const running = this.#child.pid && this.#child.exitCode === null && this.#child.signalCode === null;
        const exited = running && once(this.#child, 'exit');
        await this.#guard.release();
        await exited;
    }

    async #spawned() {
        if (this.#child.pid === undefined)
            await once(this.#child, 'spawn');
    }

    #lastWords() {
        return this.#stderr ? `\nchromium's last words:\n${this.#stderr}` : '\nchromium wrote nothing.';
    }
}

/* Outside of its profile, Chromium writes a socket to TMPDIR, and caches and crash reports below HOME. */
function environment(outer, dir) {
    const tmp = join(dir, 'tmp');
    mkdirSync(tmp);
    const env = { ...outer, HOME: dir, TMPDIR: tmp };
    for (const name of ['XDG_CONFIG_HOME', 'XDG_CACHE_HOME', 'XDG_DATA_HOME', 'CHROMIUM_FLAGS'])
        delete env[name];
    return env;
}

function notInstalled(executable = 'chromium', cause) {
    const text = `${executable} is not there: install the Debian package 'chromium' (apt install chromium)`;
    return new Error(text, { cause });
}
