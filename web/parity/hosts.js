/*
 * Where fixtures are run. Each host has `run(fixture)`, which gives the Record of its script, and `close()`;
 * those that have the package also `play(fixture)`, which gives the Record of the scenario of that name.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { Chromium } from '../tools/chromium.js';
import { serve } from '../tools/serve.js';

/** What is known of a run that left nothing behind. */
function lost(text) {
    return { actual: {}, ids: [], trace: '', missing: [], witness: [], error: { text } };
}

/** Neither a verdict of it nor its words on stderr are errors: the caller looks at both. */
function command(file, args) {
    return new Promise((resolve) => {
        execFile(file, args, { maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
            resolve({ code: error === null ? 0 : error.code ?? error.signal, stdout, stderr: stderr.trim() });
        });
    });
}

/** The `ebb` command. */
export class Native {
    name = 'native';
    #options;
    #dir;

    constructor(options, dir) {
        this.#options = options;
        this.#dir = dir;
    }

    static async open(options) {
        return new Native(options, await mkdtemp(join(tmpdir(), 'ebb-parity-')));
    }

    async run(fixture) {
        const { id } = fixture;
        const traced = this.#ebb('run', id, '--trace-dir', this.#dir);
        const shown = await this.#ebb('show', id);
        await traced;
        const { code, stderr } = shown;
        if (code !== 0 && code !== 1) return lost(`ebb fixture show: ${code}: ${stderr}`);
        const bytes = await readFile(join(this.#dir, `${id}.trace`));
        const { inspectTrace } = this.#options.staged;
        return {
            actual: JSON.parse(shown.stdout),
            ...inspectTrace(this.#options.module, bytes),
            trace: bytes.toString('base64'),
            ...judgement(shown),
        };
    }

    #ebb(verb, id, ...rest) {
        const { ebb, fixtures, seed } = this.#options;
        const seeded = seed === undefined ? [] : ['--seed', seed];
        return command(ebb, ['fixture', verb, id, '--dir', fixtures, ...seeded, ...rest]);
    }

    async close() {
        await rm(this.#dir, { recursive: true });
    }
}

/** What the command found by itself: "ebb: ID: line 8: witness of task worker: ..." */
function judgement({ code, stderr }) {
    const [, line, text] = /: line (\d+): (.*)/.exec(stderr) ?? [];
    if (code === 0) return { witness: [] };
    if (text === undefined) return { witness: [], error: { text: stderr } };
    const [, task, why] = /^witness of task (\S+): (.*)/.exec(text) ?? [];
    if (task !== undefined) return { witness: [{ line: Number(line), task, text: why }] };
    const [, oracle] = /^oracle (\S+)/.exec(text) ?? [];
    return { witness: [], problem: { line: Number(line), oracle, text } };
}

/** This process, with the files that are staged for the page. */
export class NodeHost {
    name = 'node';
    #options;
    #stray = [];
    #listen = (error) => this.#stray.push(error);

    constructor(options) {
        this.#options = options;
        process.on('unhandledRejection', this.#listen);
    }

    static async open(options) {
        return new NodeHost(options);
    }

    run(fixture) {
        const { staged, module, plant, seed } = this.#options;
        return staged.runFixture(module, fixture, { plant, seed });
    }

    async play(fixture) {
        const { staged, module, ownModule, plant } = this.#options;
        const options = ownModule ? {} : { module, plant };
        const record = await staged.runScenario(fixture.id, staged.hostOf(globalThis), options);
        await new Promise((resolve) => setImmediate(resolve)); /* a rejection is unhandled a turn later */
        return withStray(record, this.#stray.splice(0).map((error) => String(error?.stack ?? error)));
    }

    async close() {
        process.off('unhandledRejection', this.#listen);
    }
}

/** An error that nobody caught is one, whatever the run came to. */
function withStray(record, stray) {
    if (stray.length === 0 || record.error !== undefined) return record;
    return { ...record, error: { text: `uncaught: ${stray.join('\n')}` } };
}

/** One page of one browser. */
export class ChromiumHost {
    name = 'chromium';
    #options;
    #server;
    #browser;
    #page;
    #heard = 0;

    constructor(options) {
        this.#options = options;
    }

    static async open(options) {
        const host = new ChromiumHost(options);
        try {
            await host.#open();
            return host;
        } catch (error) {
            await host.close();
            throw error;
        }
    }

    async #open() {
        const { ebb, dir } = this.#options;
        this.#server = await serve({ ebb, dir });
        this.#browser = await Chromium.start();
        this.#page = await this.#browser.page();
        await this.#page.goto(`${this.#server.url}parity/page.html`);
        await this.#page.waitFor(() => globalThis.parity !== undefined, 'the functions of parity/page.js');
    }

    run(fixture) {
        const { moduleName, plant, seed } = this.#options;
        const run = (...args) => globalThis.parity.fixture(...args);
        return this.#ask(run, moduleName, fixture, { plant, seed });
    }

    play(fixture) {
        const { moduleName, ownModule, plant } = this.#options;
        const play = (...args) => globalThis.parity.scenario(...args);
        return this.#ask(play, ownModule ? null : moduleName, fixture.id, { plant });
    }

    async #ask(code, ...args) {
        const page = this.#page;
        const record = await page.evaluate(code, ...args).catch((error) => lost(error.message));
        const said = page.console.slice(this.#heard).filter(({ type }) => type === 'exception');
        this.#heard = page.console.length;
        return withStray(record, said.map(({ text }) => text));
    }

    /** What it asked for that is not ours. */
    get foreign() {
        return this.#page.foreignRequests(this.#server.url);
    }

    async close() {
        await this.#browser?.close();
        await this.#server?.stop();
    }
}

export const HOSTS = { native: Native, node: NodeHost, chromium: ChromiumHost };

/** The modules that Node runs, from where the page has them: a package without its wasm is none. */
export async function stagedModules(dir) {
    const load = (file) => import(pathToFileURL(join(dir, file)).href);
    const all = await Promise.all(['parity/fixture.js', 'parity/adapter.js', 'ebb-web/index.js'].map(load));
    return Object.assign({}, ...all);
}
