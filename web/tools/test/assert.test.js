/* The page's assert against that of Node. */
import nodeAssert from 'node:assert/strict';
import * as nodeModule from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';

import pageAssert from '../assert.js';
import * as pageModule from '../assert.js';
import { Chromium } from '../chromium.js';
import { serve } from '../serve.js';
import { outcomes } from './assert-cases.js';
import { ebb, web } from './served.js';

const expected = await outcomes(nodeAssert);

/** All at once, with both sides. */
function differing(actual) {
    const pairs = expected.map((each, i) => ({ node: each, page: actual[i] }));
    return pairs.filter(({ node, page }) => !isDeepStrictEqual(node, page));
}

test('the cases pass and fail both, in plenty', () => {
    const passing = expected.filter(([, outcome]) => outcome === 'passes').length;
    nodeAssert.ok(passing > 200 && expected.length - passing > 200, `${passing} of ${expected.length} pass`);
});

test('each case has the outcome that it has with node:assert/strict', async () => {
    nodeAssert.deepEqual(differing(await outcomes(pageAssert)), []);
});

test('and so it is in the page', async () => {
    const server = await serve({ ebb, dir: web });
    const browser = await Chromium.start();
    const page = await browser.page();
    await page.goto(`${server.url}tools/test/samples/quiet.html`);
    const actual = await page.evaluate(async () => {
        const { outcomes: run } = await import('/tools/test/assert-cases.js');
        return await run((await import('/tools/assert.js')).default);
    });
    nodeAssert.deepEqual(differing(actual), []);
    await browser.close();
    await server.stop();
});

test('every name that it has is one of Node', () => {
    for (const name of Object.keys(pageModule))
        nodeAssert.ok(name in nodeModule, name);
    for (const name of Object.keys(pageAssert))
        nodeAssert.ok(name in nodeAssert, name);
});

/** The message of what is thrown. */
function said(fn) {
    try {
        fn();
    } catch (error) {
        return error.message;
    }
    return '';
}

test('a message says where two values differ', () => {
    nodeAssert.match(said(() => pageAssert.equal(1, 2)), /strictly equal:\n\n1 !== 2/);
    nodeAssert.match(said(() => pageAssert.equal(1, 2, 'mine')), /^mine\n\n1 !== 2\n$/);
    const deep = said(() => pageAssert.deepEqual({ a: [1, { 'b c': 2n }] }, { a: [1, { 'b c': 3n }] }));
    nodeAssert.match(deep, /first difference at \.a\[1\]\["b c"\]: 2n !== 3n/);
    nodeAssert.match(deep, /\{ a: \[ 1, \{ 'b c': 2n \} \] \}/);
    nodeAssert.match(said(() => pageAssert.deepEqual(new Map([[1, new Set(['x'])]]), new Map())),
        /Map\(1\) \{ 1 => Set\(1\) \{ 'x' \} \} !== Map\(0\) \{\}/);
    nodeAssert.match(said(() => pageAssert.deepEqual(new Uint8Array([1, 255]), new Uint8Array(2))),
        /Uint8Array\(2\) \[ 1, 255 \] !== Uint8Array\(2\) \[ 0, 0 \]/);
});

test('a value of any size or shape makes a message', () => {
    const loop = { list: Array.from({ length: 1000 }, (none, i) => ({ i })) };
    loop.loop = loop;
    nodeAssert.match(said(() => pageAssert.equal(loop, null)), /\.\.\. 950 more[^]*\[Circular\]/);
    const nasty = { get x() { throw new Error('no'); } };
    nodeAssert.match(said(() => pageAssert.equal(nasty, 1)), /can't be read: Error: no/);
});
