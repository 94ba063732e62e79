/* The page's node:test against that of Node: the same files, run by both. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { after, before, test } from 'node:test';

import { Chromium } from '../chromium.js';
import { serve } from '../serve.js';
import { outcomesInNode } from './outcomes-in-node.js';
import { ebb, web } from './served.js';

let browser;
let server;
before(async () => {
    server = await serve({ ebb, dir: web });
    browser = await Chromium.start();
});
after(async () => {
    await browser.close();
    await server.stop();
});

async function resultsInPage(...names) {
    const page = await browser.page();
    const files = names.map((name) => `/tools/test/samples/${name}`).join(',');
    await page.goto(`${server.url}tools/tests.html?files=${files}`);
    return { page, results: await page.evaluate('results') };
}

const inNode = (name) => outcomesInNode(fileURLToPath(new URL(`./samples/${name}`, import.meta.url)));
const shape = ({ error, ms, diagnostics, ...rest }) => rest;

for (const [name, count] of [['hooks.sample.js', 6], ['outcomes.sample.js', 51], ['awaited.sample.js', 4]])
    test(`${name} comes to the same in Node and in the page`, async () => {
        const expected = await inNode(name);
        const { results } = await resultsInPage(name);
        assert.deepEqual(results.map(shape), expected);
        assert.equal(results.length, count);
    });

test('a test that fails is told with its error and its place', async () => {
    const { results, page } = await resultsInPage('failing.sample.js');
    assert.deepEqual(results.map(({ name, ok }) => [name, ok]), [['is right', true], ['is wrong', false]]);
    assert.match(results[1].error, /AssertionError: Expected values to be strictly equal:\n\n2 !== 3/);
    assert.match(results[1].error, /failing\.sample\.js:7:/);
    assert.doesNotMatch(results[1].error, /node-test\.js/);
    assert.ok(results.every(({ ms }) => ms >= 0));
    assert.match(await page.evaluate("document.querySelector('li.failed').textContent"), /^not ok is wrong/);
});

test('a hook before all tests that throws fails each of them and the file', async () => {
    const { results } = await resultsInPage('root-before.sample.js');
    assert.deepEqual(results.map(({ ok }) => ok), [false, false]);
    assert.match(results[0].name, /never runs/);
    assert.match(results[1].error, /no ground to stand on/);
});

test('a file that can not be loaded is a failure with its name', async () => {
    const { results } = await resultsInPage('broken.sample.js', 'none.js', 'passing.sample.js');
    assert.deepEqual(results.map(({ ok }) => ok), [false, false, true, true]);
    assert.match(results[0].name, /broken\.sample\.js$/);
    assert.match(results[1].error, /none\.js: status 404/);
});

test('several files are one after the other, and one for Node only is passed over', async () => {
    const { results } = await resultsInPage('passing.sample.js', 'only-node.sample.js', 'failing.sample.js');
    assert.deepEqual(results.map(({ name, ok, skip }) => [name.replace(/.*\//, ''), ok, skip]), [
        ['arithmetic > adds', true, undefined], ['arithmetic > is skipped', true, 'today'],
        ['only-node.sample.js', true, 'only: node'],
        ['is right', true, undefined], ['is wrong', false, undefined],
    ]);
    assert.deepEqual(results[0].diagnostics, ['one and one']);
});

test('an error that nobody catches fails the test that runs, and only that', async () => {
    const { results } = await resultsInPage('strays.sample.js');
    assert.deepEqual(results.map(({ name, ok }) => [name, ok]), [
        ['an error in a timer', false], ['a rejection', false], ['after them, all is well', true],
        ['one that comes as the test ends', true], ['outside of every test', false],
        ['is not held against the next', true],
    ]);
    assert.match(results[0].error, /^Error: stray\n/);
    assert.match(results[1].error, /^Error: lost\n/);
    assert.match(results[4].error, /^Error: last\n/);
});

test('a test may hear such an error itself', async () => {
    const { results, page } = await resultsInPage('heard.sample.js');
    assert.deepEqual(results.map(({ ok, error }) => [ok, error]), [[true, undefined]]);
    assert.deepEqual(page.console, []);
});

test('an error outside of every test is a failure', async () => {
    const { results } = await resultsInPage('uncaught.sample.js');
    assert.deepEqual(results.map(({ name, ok }) => [name, ok]),
        [['outside of every test', false], ['leaves something behind', true]]);
    assert.match(results[0].error, /left behind/);
});
