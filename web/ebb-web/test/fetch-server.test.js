// only: node
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import test from 'node:test';

import { Cancelled } from '../index.js';
import { real } from './real-host.js';

/** A server that answers /now at once, /never never, and /slow with a body that does not end. */
async function server(t) {
    const [asked, closed] = [[], []];
    const http = createServer((request, response) => {
        asked.push(request.url);
        response.on('close', () => closed.push([request.url, response.writableEnded]));
        if (request.url === '/now') response.end('hello');
        if (request.url === '/slow') response.write('the beginning');
    });
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    t.after(() => {
        http.closeAllConnections();
        http.close();
    });
    return { url: `http://127.0.0.1:${http.address().port}`, asked, closed };
}

async function until(condition) {
    for (let i = 0; i < 800 && !condition(); i++) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.ok(condition());
}

test('cx.fetch fetches', async (t) => {
    const { url } = await server(t);
    const rt = real(t);
    const task = rt.region().spawn(async (cx) => (await cx.fetch(`${url}/now`)).text());
    assert.equal(await task.result, 'hello');
});

test('a cancel closes the connection of a request that waits for its answer', async (t) => {
    const { url, asked, closed } = await server(t);
    const rt = real(t);
    const task = rt.region().spawn((cx) => cx.fetch(`${url}/never`));
    await until(() => asked.length > 0);
    task.cancel('gone');
    await assert.rejects(task.result, (error) => error instanceof Cancelled && error.reason === 'gone');
    await until(() => closed.length > 0);
    assert.deepEqual(closed, [['/never', false]]);
});

test('a cancel closes the connection of a body that is being read', async (t) => {
    const { url, closed } = await server(t);
    const rt = real(t);
    let begun;
    const task = rt.region().spawn(async (cx) => {
        const response = await cx.fetch(`${url}/slow`);
        begun = true;
        return response.text();
    });
    await until(() => begun);
    task.cancel('gone');
    await assert.rejects(task.result, { name: 'AbortError' });
    await until(() => closed.length > 0);
    assert.deepEqual(closed, [['/slow', false]]);
    assert.equal((await task.region.close()).status, 'ok');
});

test('a race of requests closes the connections of the losers', async (t) => {
    const { url, asked, closed } = await server(t);
    const rt = real(t);
    const get = (path) => async (cx) => (await cx.fetch(`${url}${path}`)).text();
    const whenAsked = async (cx) => {
        await cx.wait(until(() => asked.length === 2));
        return get('/now')(cx);
    };
    assert.equal(await rt.region().race([get('/never'), whenAsked, get('/slow')]), 'hello');
    assert.equal(rt.stats().tasks, 0);
    await until(() => closed.length === 3);
});

test('AbortSignal.timeout on a fetch is a TimeoutError, on the task it is TIMEOUT', async (t) => {
    const { url } = await server(t);
    const rt = real(t);
    const region = rt.region({ collect: true });
    region.done.catch(() => {});
    const inner = region.spawn((cx) => cx.fetch(`${url}/never`, { signal: AbortSignal.timeout(20) }));
    const outer = region.spawn((cx) => cx.fetch(`${url}/never`), { signal: AbortSignal.timeout(20) });
    await assert.rejects(inner.result, { name: 'TimeoutError' });
    await assert.rejects(outer.result, { kind: 'TIMEOUT' });
});

test('a server that is not there fails the task as it fails fetch', async (t) => {
    const rt = real(t);
    const region = rt.region();
    region.done.catch(() => {});
    await assert.rejects(region.spawn((cx) => cx.fetch('http://127.0.0.1:1/')).result, TypeError);
});
