/* The source of a scene, edited with real keys and clicks; what each scene tells; and what axe finds. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';

import { installed } from '../../tools/npm.js';
import { inPhase, onPage, row, saying, start, stop, textOf, until } from './on-page.js';

let axe;

before(async () => {
    const [npm] = await Promise.all([installed(), start()]);
    axe = readFileSync(npm.file('axe-core/axe.min.js'), 'utf8');
});
after(stop);

const sourceOf = (page) => page.evaluate(() => document.querySelector('#source').value);
const disabled = (page, selector) => page.evaluate((s) => document.querySelector(s).ariaDisabled === 'true', selector);

/** Types in place of all that stands there. A new line of the editor has no indentation of its own. */
async function write(page, text) {
    await page.click('#source');
    await page.press('Control+a');
    for (const [i, line] of text.split('\n').entries()) {
        if (i > 0) await page.press('Enter');
        await page.type(line);
    }
    assert.equal(await sourceOf(page), text);
}

const OWN = `const mine = run.open(run.root, 'mine');
run.start(mine, 'typed', (cx) => cx.sleep(9e9));
await sleep(9);
run.cancel(mine);
await mine.done;
return 'Typed.';`;

describe('the source', () => {
    it('stands beside the tree, is edited, run, and reset', () => onPage(async (page) => {
        await page.click('#scene-cascade');
        assert.match(await sourceOf(page), /^let region = run\.root;\nconst regions = \['fleet'/);
        const [tree, source] = await page.evaluate(() => ['#tree', '#source'].map((s) =>
            document.querySelector(s).getBoundingClientRect().toJSON()));
        assert.ok(source.left >= tree.right && source.top < tree.bottom, 'beside the tree');
        assert.equal(await disabled(page, '#source-reset'), true);
        await write(page, OWN);
        assert.equal(await page.evaluate(() => document.querySelector('#source-lines').children.length), 6);
        await page.click('#source-run');
        await saying(page, '#caption', 'Typed.');
        await inPhase(page, 'typed', 'Completed');
        assert.equal(await page.evaluate((s) => document.querySelector(s), row('fleet')), null);
        await page.click('#scene-race');
        await inPhase(page, 'regatta master', 'Running');
        await page.click('#scene-cascade'); /* what was edited is kept */
        assert.equal(await sourceOf(page), OWN);
        await page.click('#source-reset');
        assert.match(await sourceOf(page), /^let region = run\.root;/);
        assert.equal(await disabled(page, '#source-reset'), true);
        await page.press('Control+Enter');
        await inPhase(page, 'another sailor', 'Running');
    }));

    for (const [what, text, told] of [
        ['an error of its syntax', "const a = 1;\nconst a = 2;\n", /^Line 2: SyntaxError: .*'a'/],
        ['what it throws', "say('x');\nawait sleep(1);\nnobody.calls(this);", /^Line 3: ReferenceError: nobody is not defined/],
        ['what a task of it throws that nobody waits for',
            "run.start(run.root, 'bad', async (cx) => {\nawait cx.yield();\nthrow new TypeError('mine');\n});\nawait sleep(30);",
            /^Line 3: TypeError: mine/],
        ['what the runtime refuses', "const r = run.open(run.root, 'r');\nawait r.close();\nr.spawn(() => 1);",
            /^Line 3: EbbError: .*region r has ended/],
    ]) {
        it(`says the line of ${what}`, () => onPage(async (page) => {
            await write(page, text);
            await page.click('#source-run');
            await page.waitFor(() => document.querySelector('#source-problem').textContent !== '', 'a problem');
            assert.match(await textOf(page, '#source-problem'), told);
            const line = /\d+/.exec(told.source)[0];
            assert.equal(await textOf(page, '#source-lines .wrong'), line);
            assert.equal(await page.evaluate(() => document.querySelector('#source').ariaInvalid), 'true');
            await page.click('#source');
            await page.press('Control+a');
            await page.type('return 1;'); /* an edit takes it away */
            assert.equal(await textOf(page, '#source-problem'), '');
            await page.click('#source-run');
            await saying(page, '#caption', 'The scene is over.');
        }));
    }

    it('has no network', () => onPage(async (page) => {
        await write(page, "await fetch('main.js');");
        await page.click('#source-run');
        await saying(page, '#source-problem', 'Failed to fetch');
        assert.match(page.consoleText(), /Content Security Policy/);
        page.console.length = 0;
    }));

    it('what a scene tells goes with it: another one begins without it', () => onPage(async (page) => {
        await page.click('#scene-abandoned');
        await until(page, '#notices .notice');
        await page.click('#scene-masked');
        assert.equal(await textOf(page, '#notices'), '');
        await inPhase(page, 'clerk', 'Running');
        assert.equal(await page.evaluate((s) => document.querySelector(s), row('cellar')), null);
        assert.equal(await textOf(page, '#notices'), '');
    }));

    it('lanes and raw fields are folded away, and the keyboard unfolds them', () => onPage(async (page) => {
        const seen = () => page.evaluate(() => ['#lanes', '#fields'].map((s) => document.querySelector(s).checkVisibility()));
        assert.deepEqual(await seen(), [false, false]);
        for (const summary of ['.lanes summary', '.raw summary']) {
            await page.evaluate((s) => document.querySelector(s).focus(), summary);
            await page.press('Enter');
        }
        assert.deepEqual(await seen(), [true, true]);
    }));

    it('at 360 px the header is short: the tree begins in the first third of the page', () => onPage(async (page) => {
        await page.click('#scene-shutdown');
        await inPhase(page, 'acceptor', 'Running');
        const top = await page.evaluate(() => document.querySelector('main').getBoundingClientRect().top);
        assert.ok(top <= 640 / 3, `${top} px`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= 360, `${wide} px`);
    }, { size: { width: 360, height: 640 } }));
});

describe('axe finds nothing', () => {
    for (const width of [360, 1024, 1920]) {
        for (const scheme of ['light', 'dark']) {
            it(`at ${width} px, ${scheme}: at first, in a scene, with a mistake and everything unfolded`, () => onPage(async (page) => {
                await page.evaluate(`${axe}; undefined`);
                const look = async (when) => assert.deepEqual(await page.evaluate(complaints), [], when);
                await look('at first');
                await page.click('#scene-shutdown');
                await inPhase(page, 'acceptor', 'Running');
                await page.click(row('acceptor'));
                await look('in a scene');
                await page.evaluate(() => document.querySelectorAll('details').forEach((each) => (each.open = true)));
                await page.evaluate(() => document.querySelector('#source').setSelectionRange(0, 0));
                await page.click('#source');
                await page.press('Control+a');
                await page.type('oops();');
                await page.click('#source-run');
                await until(page, '#source-lines .wrong');
                await look('with a mistake');
                await page.click('#ask');
                await look('with the words');
            }, { size: { width, height: 900 }, media: { 'prefers-color-scheme': scheme, 'prefers-reduced-motion': 'reduce' } }));
        }
    }
});

/** Runs in the page: what axe has to say. */
async function complaints() {
    const { violations } = await globalThis.axe.run();
    return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(' ')}: ${node.failureSummary}`));
}
