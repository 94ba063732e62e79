/* The dashboard of a service: its views, its stream of events, and how what an operator asked for has ended.
 *
 * A view is a module that exports one function, and a line in VIEWS. The function is called when the view is first looked
 * at: `make(place, host)`. `place` is an empty element with the view's heading before it; `host` has `say`, `ask`, `change`,
 * `go`, the `model` of regions and tasks, and the `series` of the numbers. It returns what the view wants to hear of, each of it optional:
 *
 *     shown(rest)    it is looked at; `rest` has the parts of the address after its name: #/instances/order-7 -> ['order-7']
 *     hidden()       something else is
 *     on: { live(snapshot), ... }    the events of the stream by name, while it is looked at
 */
import { ask, change, events, hasToken, setToken, takeToken } from './api.js';
import { h, setAttribute, setText } from './element.js';
import { instances } from './instances.js';
import { useKeys } from './keys.js';
import { machines } from './machines.js';
import { Model } from './model.js';
import { overview } from './overview.js';
import { plots } from './plots.js';
import { age } from './rows.js';
import { Series } from './series.js';
import { trace } from './trace.js';

const VIEWS = [
    { name: 'overview', title: 'Overview', make: overview },
    { name: 'instances', title: 'Instances', make: instances },
    { name: 'machines', title: 'Machines', make: machines },
    { name: 'plots', title: 'Plots', make: plots },
    { name: 'trace', title: 'Trace', make: trace },
];

const AGAIN_MS = 1000;
const said = document.querySelector('#said');
const token = document.querySelector('#token');
const main = document.querySelector('#main');
const model = new Model(); /* of regions and tasks */
const series = new Series(); /* of the numbers */
let stream = new AbortController();
let now; /* the view that is looked at */

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

/* ---- views --------------------------------------------------------------------------------------------------------- */

/** To a view, or to something in one: go('instances', 'order-7'). */
function go(name, ...rest) {
    location.hash = `#/${[name, ...rest].map(encodeURIComponent).join('/')}`;
}

const host = { say, ask, change, go, model, series };

function makeView(view) {
    const place = h('div', { className: 'place' });
    const title = h('h2', { id: `${view.name}-title`, className: 'unseen' }, view.title);
    view.section = h('section', { className: 'view', 'aria-labelledby': title.id }, title, place);
    view.section.dataset.view = view.name;
    main.append(view.section);
    view.made = view.make(place, host) ?? {};
}

function partsOf(hash) {
    const [, name, ...rest] = hash.split('/').map(decodeURIComponent);
    return { view: VIEWS.find((v) => v.name === name) ?? VIEWS[0], rest };
}

/** What was said of one view is not said above another. */
function leave() {
    now?.made.hidden?.();
    setText(said, '');
    delete said.dataset.bad;
}

function showView() {
    if (!/^#?$|^#\//.test(location.hash)) return; /* a place on the page */
    const { view, rest } = partsOf(location.hash);
    if (view !== now) leave();
    if (view.made === undefined) makeView(view);
    for (const v of VIEWS) {
        if (v.section !== undefined) v.section.hidden = v !== view;
        setAttribute(v.link, 'aria-current', v === view ? 'page' : undefined);
    }
    now = view;
    document.title = `${view.title} - Ebb dashboard`;
    view.made.shown?.(rest);
}

function useViews() {
    const list = document.querySelector('#views ul');
    for (const view of VIEWS) {
        view.link = h('a', { href: `#/${view.name}` }, view.title);
        list.append(h('li', {}, view.link));
    }
    addEventListener('hashchange', showView);
    showView();
}

/* ---- the stream ---------------------------------------------------------------------------------------------------- */

function showLink(state, text) {
    document.body.dataset.link = state;
    setText(document.querySelector('#link'), text);
}

function showLive(snapshot) {
    const [loop] = snapshot.loops;
    series.add(loop, performance.now());
    showLink('live', loop.state === 'IDLE' ? 'live' : `live, ${loop.state} ${age(loop.elapsed_ms)} of ${age(loop.budget_ms)}`);
    setText(document.querySelector('#service'),
        `Ebb ${snapshot.version}, process ${snapshot.pid}: ${loop.tasks} tasks, ${loop.regions} regions, ${loop.fibers.alive} fibers`);
}

function hear(name, data) {
    if (name === 'live') showLive(data);
    if (name === 'tree') model.apply(data, performance.now());
    now.made.on?.[name]?.(data);
}

const sleep = (ms) => new Promise((resolve) => {
    setTimeout(resolve, ms);
});

/** For as long as the page is there: a stream that ends is asked for again. */
async function follow() {
    for (;;) {
        stream = new AbortController();
        const { signal } = stream;
        try {
            await events('api/v1/events?most=1', hear, signal);
            showLink('lost', 'the service has ended the stream');
        } catch (error) {
            /* What a browser says of a server that is not there differs from browser to browser. */
            if (!signal.aborted) showLink('lost', error instanceof TypeError ? 'the service does not answer' : error.message);
        }
        if (!signal.aborted) await sleep(AGAIN_MS);
    }
}

/** The field does not show the token that is used, but that there is one. */
function showToken() {
    setAttribute(token, 'placeholder', hasToken() ? 'in use' : 'none: nothing can be changed');
}

takeToken();
showToken();
document.querySelector('#access').addEventListener('submit', (event) => {
    event.preventDefault();
    setToken(token.value);
    token.value = '';
    showToken();
    setText(said, hasToken() ? 'the token is used in this tab' : 'no token is used in this tab');
    stream.abort();
});
useViews();
useKeys(VIEWS, go);
follow();
