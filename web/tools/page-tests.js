/*
 * What tests.html runs: the test files of `?files=/a.test.js,/b.test.js`, one after the other. The results
 * are on globalThis.results, a promise of an array; the page shows them; and if there is a function
 * globalThis.report, it is given each one at once, as JSON, and before it `{ started: name }`.
 */
import { runFile, running } from './node-test.js';

const list = document.querySelector('ol');

function show({ name, ok, skip, todo, error = '' }) {
    const item = list.appendChild(document.createElement('li'));
    const note = skip !== undefined ? ` # SKIP ${skip}` : todo !== undefined ? ` # TODO ${todo}` : '';
    item.className = ok ? 'ok' : 'failed';
    item.textContent = `${ok ? 'ok' : 'not ok'} ${name}${note}`;
    if (!ok)
        item.appendChild(document.createElement('pre')).textContent = error;
}

/** Of import(), only the developer tools learn why a module could not be fetched. */
async function sourceOf(file) {
    const answer = await fetch(file);
    if (!answer.ok)
        throw new Error(`${file}: status ${answer.status}`);
    return await answer.text();
}

function tell(news) {
    globalThis.report?.(JSON.stringify(news));
}

async function runAll(files) {
    const results = [];
    const ended = (result) => {
        results.push(result);
        show(result);
        tell(result);
    };
    hearStrays(ended);
    for (const file of files)
        await runOne(file, { started: (name) => tell({ started: name }), ended });
    return results;
}

/**
 * An error that nobody caught fails the test that runs when it comes. A test may hear it itself, and says so
 * by preventDefault(); but its listener came after ours, so the answer is looked for when all have been
 * called.
 */
function hearStrays(ended) {
    const unheard = (event, error) => {
        const fail = running();
        const text = String(error?.stack ?? error);
        const stray = () => fail(error) ||
            ended({ name: 'outside of every test', ok: false, error: text, ms: 0 });
        setTimeout(() => event.defaultPrevented || stray());
    };
    addEventListener('error', (event) => unheard(event, event.error ?? event.message));
    addEventListener('unhandledrejection', (event) => unheard(event, event.reason));
}

async function runOne(file, observer) {
    const load = async () => {
        if (/^\/\/ only: node\b/.test(await sourceOf(file)))
            observer.ended({ name: file, ok: true, skip: 'only: node', ms: 0 });
        else
            await import(file);
    };
    await runFile(file, load, observer);
    await new Promise((resolve) => setTimeout(resolve)); /* what it left behind is told by now */
}

const files = new URLSearchParams(location.search).get('files')?.split(',').filter(Boolean) ?? [];
/* Not configurable: the driver asks for it while a test may have every other global replaced. */
Object.defineProperty(globalThis, 'results', {
    value: runAll(files.map((file) => new URL(file, location.href).href)),
});
await globalThis.results;
document.body.classList.add('done');
