/* The dashboard of a service: its stream of events, shown; and what the operator asks for, said. */
import { ask, change, events, setToken, takeToken } from './api.js';
import { showDrains } from './drains.js';
import { setText } from './element.js';
import { query, showInstances, useInstances } from './instances.js';
import { machines } from './machines.js';
import { age } from './rows.js';
import { showTree } from './tree.js';

const AGAIN_MS = 1000;
const said = document.querySelector('#said');
const token = document.querySelector('#token');
let stream = new AbortController();

/** Says how something ended. */
async function say(what, outcome) {
    try {
        const text = await outcome;
        setText(said, typeof text === 'string' ? text : `${what}: done`);
        delete said.dataset.bad;
    } catch (error) {
        setText(said, `${what}: ${error.message}`);
        said.dataset.bad = '';
    }
}

function showLink(state, text) {
    document.body.dataset.link = state;
    setText(document.querySelector('#link'), text);
}

function showLive(snapshot) {
    const [loop] = snapshot.loops;
    showLink('live', loop.state === 'IDLE' ? 'live' : `live, ${loop.state} ${age(loop.elapsed_ms)} of ${age(loop.budget_ms)}`);
    setText(document.querySelector('#service'),
        `Ebb ${snapshot.version}, process ${snapshot.pid}: ${loop.tasks} tasks, ${loop.regions} regions, ${loop.fibers.alive} fibers`);
    showTree(loop, say);
    showDrains(loop, say);
}

const on = { live: showLive, instances: (page) => showInstances(page, say) };
const sleep = (ms) => new Promise((resolve) => {
    setTimeout(resolve, ms);
});

/** For as long as the page is there: a stream that ends is asked for again. */
async function follow() {
    for (;;) {
        stream = new AbortController();
        const { signal } = stream;
        try {
            await events(`api/v1/events?${query()}`, on, signal);
            showLink('lost', 'the service has ended the stream');
        } catch (error) {
            if (!signal.aborted) showLink('lost', error.message);
        }
        if (!signal.aborted) await sleep(AGAIN_MS);
    }
}

takeToken();
document.querySelector('#access').addEventListener('submit', (event) => {
    event.preventDefault();
    setToken(token.value);
    token.value = '';
    setText(said, 'the token is used in this tab');
    stream.abort();
});
useInstances(say, () => stream.abort());
machines(document.querySelector('#machines-view'), { say, ask, change }).shown();
follow();
