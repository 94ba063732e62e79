/*
 * As much of node:test as the tests need, for a page. An import map gives it that name, so the test files are
 * the same in Node and in the browser.
 *
 * Tests run one after the other, in the order in which they were made. There is no async context in a page,
 * so the innermost test that runs is the one that a test() called without its `t`, or an error that nobody
 * caught, belongs to.
 */

/**
 * @typedef {{ name: string, ok: boolean, error?: string, ms: number, skip?: string, todo?: string,
 *     diagnostics?: string[] }} Result
 */

const noop = () => {};
const HOOKS = ['before', 'after', 'beforeEach', 'afterEach'];

/**
 * The root of a file, a suite or a test. An entry ends exactly once, in #end, and is reported then; one whose
 * parent ends first fails with it. Children run in order and one at a time: those of a test as soon as they
 * are made, those of a suite in its turn, those of a file when it is loaded or when it waits for one of them.
 */
class Entry {
    children = [];
    hooks = Object.fromEntries(HOOKS.map((kind) => [kind, []]));
    diagnostics = [];
    error = null;
    ended = false;
    #started = 0;
    #tail = Promise.resolve();
    #ready;
    #interrupt = noop;
    #controller = new AbortController();

    constructor({ kind, parent = null, name = '', options = {}, fn = noop, observer }) {
        Object.assign(this, { kind, parent, name, options, fn, observer });
        this.skip = given(options.skip);
        this.todo = given(options.todo);
        this.context = contextOf(this, this.#controller.signal);
    }

    get path() {
        return this.parent?.name ? `${this.parent.path} > ${this.name}` : this.name;
    }

    /** Takes a child in. What it gives can be awaited for the child's end, and is never rejected. */
    add(child) {
        this.children.push(child);
        if (this.ended)
            child.cancel('its parent had ended before it was made');
        if (this.kind === 'test')
            return this.#runThrough(child);
        return { then: (...handlers) => this.#runThrough(child).then(...handlers) };
    }

    /** Runs all children, with those that are made meanwhile. */
    async drain() {
        while (this.#started < this.children.length)
            await this.#runThrough(this.children.at(-1));
    }

    async run() {
        if (this.ended)
            return;
        const began = performance.now();
        const outer = current;
        current = this;
        if (this.kind === 'test')
            this.observer.started(this.path);
        if (this.skip === undefined)
            await (this.kind === 'suite' ? this.#runSuite() : this.#runTest());
        if (isWithin(current, this))
            current = outer;
        this.#end(performance.now() - began);
    }

    /** Fails the entry and ends its function: the time limit, or an error that nobody caught. */
    interrupt(error) {
        this.fail(error);
        this.#interrupt();
    }

    /** The first failure is the one that counts. */
    fail(error) {
        this.error ??= { value: error };
    }

    cancel(why) {
        if (this.ended)
            return;
        this.fail(new Error(`not finished: ${why}`));
        this.#end(0);
    }

    /** Runs its hooks of a kind, for an entry that fails if one throws. @returns {Promise<boolean>} */
    async runHooks(kind, entry = this) {
        for (const hook of this.hooks[kind])
            if (!await entry.attempt(() => call(hook, entry.context)))
                return false;
        return true;
    }

    /** Runs the hooks before the first child, once, those of the outer entries first. */
    ready() {
        const outer = this.parent?.ready() ?? Promise.resolve(true);
        this.#ready ??= outer.then((isReady) => isReady && this.runHooks('before'));
        return this.#ready;
    }

    async attempt(fn) {
        try {
            await fn();
            return true;
        } catch (error) {
            this.fail(error);
            return false;
        }
    }

    /**
     * Makes a suite's tests. What an async function makes after its first await could not be told from the
     * tests of others, so it is refused.
     */
    build() {
        const outer = current;
        current = this;
        try {
            if (typeof this.fn.call(this.context, this.context)?.then === 'function')
                throw new Error("the page's node:test has no suites with an async function");
        } catch (error) {
            this.fail(error);
        }
        current = outer;
    }

    #runThrough(child) {
        this.#tail = this.#tail.then(async () => {
            while (this.children.indexOf(child) >= this.#started)
                await this.children[this.#started++].run();
        });
        return this.#tail;
    }

    async #runSuite() {
        if (!this.error && await this.ready())
            await this.drain();
        await this.runHooks('after');
    }

    async #runTest() {
        const above = ancestors(this);
        if (!await this.parent.ready())
            this.fail(new Error('a hook before it failed'));
        else if (await this.#each(above, 'beforeEach'))
            await this.#body();
        if (this.skip === undefined)
            await this.#each([...above].reverse(), 'afterEach');
        await this.runHooks('after');
    }

    async #each(entries, kind) {
        for (const entry of entries)
            if (!await entry.runHooks(kind, this))
                return false;
        return true;
    }

    async #body() {
        const interrupted = new Promise((resolve) => (this.#interrupt = resolve));
        const ms = this.options.timeout;
        const late = () => this.interrupt(new Error(`test timed out after ${ms}ms`));
        const timer = Number.isFinite(ms) ? setTimeout(late, ms) : undefined;
        await Promise.race([this.attempt(() => call(this.fn, this.context)), interrupted]);
        clearTimeout(timer);
    }

    /* A suite is reported only if it has something to say that none of its tests does. */
    #end(ms) {
        if (this.ended)
            return;
        this.ended = true;
        this.#controller.abort();
        this.#endChildren();
        const own = this.error && !(this.error.value instanceof SubtestsFailed);
        if (this.kind === 'test' || own || this.skip !== undefined)
            this.observer.ended(resultOf(this, ms));
    }

    #endChildren() {
        for (const child of this.children)
            child.cancel('its parent ended before it');
        const bad = this.children.filter((child) => child.error && child.todo === undefined).length;
        if (bad)
            this.fail(new SubtestsFailed(bad));
    }
}

class SubtestsFailed extends Error {
    constructor(count) {
        super(`${count} subtest${count === 1 ? '' : 's'} failed`);
    }
}

/** The innermost entry that runs or, for a suite, is being made. @type {Entry | null} */
let current = null;

function given(option) {
    return option === undefined || option === false ? undefined : option === true ? '' : String(option);
}

function ancestors(entry) {
    const above = [];
    for (let up = entry.parent; up; up = up.parent)
        above.unshift(up);
    return above;
}

function isWithin(entry, outer) {
    return entry === outer || (entry !== null && isWithin(entry.parent, outer));
}

/* A function with a second parameter is one of the callback style. Its callback counts only after it has
 * returned: it must not give a promise as well. */
function call(fn, context) {
    if (fn.length < 2)
        return fn.call(context, context);
    return new Promise((resolve, reject) => {
        const done = (error) => queueMicrotask(() => (error ? reject(error) : resolve()));
        if (typeof fn.call(context, context, done)?.then === 'function')
            reject(new Error('passed a callback but also returned a Promise'));
    });
}

function resultOf({ path, error, skip, todo, diagnostics }, ms) {
    const result = { name: path, ok: !error || todo !== undefined, ms };
    if (error)
        result.error = textOf(error.value);
    return Object.assign(result, skip !== undefined && { skip }, todo !== undefined && { todo },
        diagnostics.length && { diagnostics });
}

/* What was thrown may be no error at all. Of the stack, our own frames are of no interest to anyone. */
function textOf(value) {
    if (!(value instanceof Error))
        return `thrown: ${String(value)}`;
    const lines = (value.stack ?? '').split('\n');
    const stack = lines.filter((line) => !line.includes(import.meta.url)).join('\n');
    const text = stack.includes(value.message) ? stack : `${value}\n${stack}`;
    return value.cause === undefined ? text : `${text}\ncaused by ${textOf(value.cause)}`;
}

/* The `t` of a test, and what a suite's function is given. */
function contextOf(entry, signal) {
    return {
        name: entry.name,
        fullName: entry.path,
        signal,
        test: (...args) => make('test', entry, args),
        diagnostic: (message) => void entry.diagnostics.push(String(message)),
        skip: (message = '') => void (entry.skip = String(message)),
        todo: (message = '') => void (entry.todo = String(message)),
        ...Object.fromEntries(HOOKS.map((kind) => [kind, (fn) => void entry.hooks[kind].push(fn)])),
        get mock() {
            throw new Error("the page's node:test has no mock");
        },
    };
}

/* (name?, options?, fn?) */
function make(kind, parent, args, extra = {}) {
    const fn = args.find((arg) => typeof arg === 'function');
    const options = args.find((arg) => typeof arg === 'object' && arg !== null);
    const name = typeof args[0] === 'string' ? args[0] : fn?.name;
    const entry = new Entry({ kind, parent, name: name || '<anonymous>', fn,
        options: { ...options, ...extra }, observer: parent.observer });
    if (kind === 'suite' && entry.skip === undefined)
        entry.build();
    return parent.add(entry);
}

function enclosing() {
    if (!current)
        throw new Error('test() was called while no file of tests was being run');
    return current;
}

function maker(kind) {
    const plain = (...args) => make(kind, enclosing(), args);
    const skip = (...args) => make(kind, enclosing(), args, { skip: true });
    const todo = (...args) => make(kind, enclosing(), args, { todo: true });
    return Object.assign(plain, { skip, todo, only: plain });
}

function hook(kind) {
    return (fn) => void enclosing().hooks[kind].push(fn);
}

export const test = maker('test');
export const describe = maker('suite');
export const before = hook('before');
export const after = hook('after');
export const beforeEach = hook('beforeEach');
export const afterEach = hook('afterEach');
export { test as it, describe as suite };
export default test;

Object.assign(test, { test, it: test, describe, suite: describe, before, after, beforeEach, afterEach });

/**
 * For an error that nobody caught: what fails the test that runs now with it.
 * @returns {(error: unknown) => boolean} false if no test ran, or if it has ended meanwhile
 */
export function running() {
    const test = current?.kind === 'test' ? current : null;
    return (error) => {
        const isRunning = test !== null && !test.ended;
        if (isRunning)
            test.interrupt(error);
        return isRunning;
    };
}

/**
 * Runs one file of tests to its end. One at a time.
 * @param {string} name of the file, for a failure outside of every test
 * @param {() => Promise<unknown>} load imports the file
 * @param {{ started(name: string): void, ended(result: Result): void }} observer is told of each test
 */
export async function runFile(name, load, observer) {
    const root = new Entry({ kind: 'root', observer });
    current = root;
    const began = performance.now();
    await root.attempt(load);
    await root.drain();
    await root.runHooks('after');
    current = null;
    root.ended = true;
    if (root.error)
        observer.ended({ name, ok: false, error: textOf(root.error.value), ms: performance.now() - began });
}
