/*
 * Runs a test file in Node by itself, and gives what each test came to, in the form of the page's results.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const REPORTER = fileURLToPath(new URL('./json-reporter.js', import.meta.url));

function textOf(option) {
    return option === true ? '' : option;
}

/* A suite that failed only because a test in it did says nothing new. */
function isNews({ type, skip, failure }) {
    return type !== 'suite' || skip !== undefined || (failure !== undefined && failure !== 'subtestsFailed');
}

/* A test is reported after those in it: the level tells whose they are. */
function withPaths(events) {
    const open = [];
    for (const event of events) {
        while (open.at(-1)?.nesting > event.nesting && open.at(-1).parent === undefined)
            open.pop().parent = event;
        open.push(event);
    }
    const path = (event) => (event.parent ? `${path(event.parent)} > ${event.name}` : event.name);
    return events.map((event) => ({ ...event, path: path(event) }));
}

async function run(file) {
    const { NODE_TEST_CONTEXT, ...env } = process.env;
    const args = [`--test-reporter=${REPORTER}`, '--test-reporter-destination=stdout', file];
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    for await (const chunk of child.stdout)
        text += chunk;
    return text.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
}

/** @returns {Promise<{ name: string, ok: boolean, skip?: string, todo?: string }[]>} */
export async function outcomesInNode(file) {
    const events = withPaths(await run(file));
    return events.filter(isNews).map(({ path, ok, skip, todo }) => ({
        name: path,
        ok: ok || todo !== undefined,
        ...(skip !== undefined && { skip: textOf(skip) }),
        ...(todo !== undefined && { todo: textOf(todo) }),
    }));
}
