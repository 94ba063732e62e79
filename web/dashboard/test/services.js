/* The services that the tests of the page look at, and the page of one. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

const {
    EBB: ebb = 'build/release/ebb',
    EBB_APP: app = 'build/release/examples/durable_app.so',
    EBB_HARBOUR: harbour = 'build/release/tests/harbour',
} = process.env;
export const SOON_MS = 60000;
export const TOKEN = '0123456789abcdef-token';

/** A process in a directory of its own, with the address of its page. */
class Service {
    async begin(program, ...args) {
        this.process = spawn(resolve(program), args, { cwd: this.dir, stdio: ['ignore', 'pipe', 'inherit'] });
        this.ended = once(this.process, 'exit');
        const [line] = await once(createInterface({ input: this.process.stdout }), 'line');
        return line;
    }

    async stop(signal = 'SIGTERM') {
        this.process.kill(signal);
        const [code] = await this.ended;
        return code;
    }

    async end() {
        await this.stop('SIGKILL');
        rmSync(this.dir, { recursive: true, force: true });
    }
}

/** `ebb serve` with a program: `charge` is the command of its activity. */
export class Daemon extends Service {
    static async start(charge = `cat >/dev/null; echo '"paid"'`) {
        const d = new Daemon();
        d.dir = mkdtempSync(join(tmpdir(), 'ebb-dashboard-'));
        d.url = await d.begin(ebb, 'serve', '--listen', '127.0.0.1:0', '--load', resolve(app), '--activity', `charge=${charge}`);
        d.token = readFileSync(join(d.dir, '.ebb/token'), 'utf8').trim();
        return d;
    }

    async change(path, body) {
        const response = await fetch(`${this.url}api/v1/${path}`, {
            method: 'POST',
            headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
            body: JSON.stringify(body),
        });
        return response.status;
    }

    async start(id) {
        assert.equal(await this.change('instances', { name: 'order', id, input: { seat: 4 } }), 201);
    }

    async state(id) {
        return (await (await fetch(`${this.url}api/v1/instances/${encodeURIComponent(id)}`)).json()).state;
    }
}

/** The program of tests/serve/programs: a fleet to cancel, a rollout that is stuck, and as many regions as wanted. */
export class Harbour extends Service {
    static async start(berths) {
        const h = new Harbour();
        h.dir = mkdtempSync(join(tmpdir(), 'ebb-harbour-'));
        h.token = TOKEN;
        writeFileSync(join(h.dir, 'token'), TOKEN, { mode: 0o600 });
        const line = await h.begin(harbour, 'token', String(berths));
        h.url = `http://127.0.0.1:${line.split(' ')[1]}/`;
        return h;
    }
}

export const until = (page, selector) =>
    page.waitFor((s) => document.querySelector(s) !== null, selector, SOON_MS, selector);

export function says(page, selector, text) {
    const has = (s, t) => document.querySelector(s)?.textContent.includes(t) ?? false;
    return page.waitFor(has, `'${text}' in ${selector}`, SOON_MS, selector, text);
}

/* What stands above grows while a mouse is on its way to what stands below it. */
export async function press(page, selector) {
    await until(page, selector);
    await page.evaluate((s) => {
        const element = document.querySelector(s);
        element.focus();
        element.click();
    }, selector);
}

/** Writes into a field as a person does, over what was in it. */
export async function write(page, selector, text) {
    await until(page, selector);
    await page.evaluate((s) => {
        const field = document.querySelector(s);
        field.focus();
        field.select?.();
    }, selector);
    await page.type(text);
}

/**
 * The page of a service, with the token or without; it asks nobody else for anything, and complains of nothing.
 * @param {object} how `quiet: false`: Chromium notes refusals on the console, and there are some
 */
export async function onPage(browser, service, use, how = {}) {
    const { hash = `#token=${service.token}`, view = 'overview', size = { width: 1280, height: 800 }, quiet = true, media } = how;
    const page = await browser.page({ timeoutMs: SOON_MS });
    await page.viewport(size);
    if (media !== undefined) await page.emulateMedia(media);
    await page.goto(service.url + hash);
    await until(page, '[data-link="live"]');
    await page.evaluate((v) => { location.hash = `#/${v}`; }, view);
    await use(page);
    if (quiet) assert.deepEqual(page.console, [], 'the console');
    assert.deepEqual(page.foreignRequests(service.url), [], 'requests to other hosts');
    await page.close();
}
