// only: node
/* The playground as a person meets it: served by `ebb files`, in Chromium, with the mouse and with keys. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import {
    choose, inPhase, NARROW, onPage, phaseOf, row, saying, sleep, SOON_MS, start, stop, textOf, until, verify, wentAllTheWay,
} from './on-page.js';

before(start);
after(stop);

describe('the story', () => {
    it('with the mouse: spawn, mask, cancel, it waits, unmask, it ends', () => onPage(async (page) => {
        await page.click('#do-spawn');
        await inPhase(page, 'worker 1', 'Running');
        await page.click(row('worker 1'));
        await page.click('#do-mask');
        await until(page, `${row('worker 1')}[data-masked="1"]`);
        await page.click('#do-cancel');
        await inPhase(page, 'worker 1', 'CancelRequested');
        await sleep(900); /* two of its waits, each a checkpoint */
        const [phase, budget, facts] = await page.evaluate((name) => {
            const text = (s) => document.querySelector(s).textContent;
            return [text(`${name} .phase`), text(`${name} .budget`), text('#inspector .facts-list')];
        }, row('worker 1'));
        await page.click('#do-unmask');
        assert.equal(phase, 'CancelRequested');
        assert.match(budget, /^[1-4]\.\d s · 1024$/);
        assert.match(facts, /reasonUSER, polite.*mask1.*epoch1/);
        await wentAllTheWay(page, 'worker 1');
        assert.equal(await textOf(page, `${row('worker 1')} .facts`), 'cancelled · USER');
        await saying(page, '#said', 'worker 1 ended: cancelled');
        const shown = await verify(page);
        const story = shown.match(/\b(masked|cancel_requested|unmasked|cancel_acked|finalized)\b/g);
        assert.deepEqual(story.slice(0, 4), ['masked', 'cancel_requested', 'unmasked', 'cancel_acked']);
        assert.equal(story.at(-1), 'finalized');
    }, { media: {} }));
});

/** Plays a scene to its end; what it left is recorded and holds. */
function scene(name, look, options) {
    return onPage(async (page) => {
        await page.click(`#scene-${name}`);
        await look(page);
        await until(page, '#caption[data-state="over"]', `the end of ${name}`);
        await saying(page, '#tally', '0 tasks');
        return { shown: await verify(page), ends: await ends(page) };
    }, options);
}

/** When each of them was asked and ended, in the runtime's own time. */
async function ends(page) {
    return await page.evaluate(() => {
        const all = [...globalThis.playground.run.model.all()];
        return Object.fromEntries(all.map(({ name, ended, status, reason, abandoned, marks }) => {
            const asked = marks.find(({ type }) => type === 'asked')?.time ?? null;
            return [name, { at: ended ?? null, asked, status, kind: reason?.kind ?? '', abandoned }];
        }));
    });
}

/** Runs in the page: what has no name, and colours that are too close, by WCAG's measure. */
function complaints() {
    const found = [];
    const labelsOf = (e) => Array.from(e.labels ?? [], (label) => label.textContent.trim()).join('');
    const nameOf = (e) => e.ariaLabel || e.textContent.trim() || labelsOf(e);
    for (const e of document.querySelectorAll('button, select, input, [role=treeitem], [role=listbox]')) {
        if (!nameOf(e)) found.push(`no name: ${e.outerHTML.slice(0, 80)}`);
    }
    const jumps = Array.from(document.querySelectorAll('[tabindex]')).filter((e) => e.tabIndex > 0);
    found.push(...jumps.map((e) => `tab order: ${e.id}`));
    const style = getComputedStyle(document.documentElement);
    const light = (name) => {
        const hex = style.getPropertyValue(`--${name}`).trim();
        const parts = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);
        const [r, g, b] = parts.map((p) => (p <= 0.04045 ? p / 12.92 : ((p + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (a, b) => {
        const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
        return (high + 0.05) / (low + 0.05);
    };
    const texts = [['ink', 'panel'], ['ink', 'page'], ['quiet', 'panel'], ['quiet', 'page'],
        ['quiet', 'sunk'], ['accent', 'panel'], ['on-accent', 'accent'], ['bad', 'panel']];
    const shapes = ['Running', 'CancelRequested', 'Cancelling', 'Finalizing', 'Completed', 'edge', 'surface'];
    const atLeast = (least, a, b) => {
        if (contrast(a, b) < least) found.push(`${a} on ${b}: ${contrast(a, b).toFixed(2)}`);
    };
    for (const [a, b] of texts) atLeast(4.5, a, b);
    for (const a of shapes) atLeast(3, a, 'panel');
    return found;
}

/** Runs in the page. */
function focusIn() {
    const e = document.activeElement;
    if (e === document.body) return { id: 'nothing', visible: true };
    const drawn = e.type === 'radio' ? e.nextElementSibling : e;
    const style = getComputedStyle(drawn);
    const visible = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
    return { id: e.id || e.dataset.name || e.value || e.className, visible };
}

/* Each on a page of its own, some at a time: most of the time they wait. */
describe('a person', { concurrency: 4 }, () => {
    it('with keys alone: the same, and by the buttons that Enter leads to', () => onPage(async (page) => {
        const idOf = () => document.activeElement.dataset.name ?? document.activeElement.id;
        const focused = () => page.evaluate(idOf);
        for (let i = 0; i < 24 && await focused() !== 'root'; i++) await page.press('Tab');
        assert.equal(await focused(), 'root');
        await page.press('n');
        await inPhase(page, 'region 1', 'Open');
        await page.press('ArrowDown');
        assert.equal(await focused(), 'region 1');
        await page.press('s');
        await inPhase(page, 'worker 1', 'Running');
        await page.press('ArrowRight');
        assert.equal(await focused(), 'worker 1');
        await page.press('m');
        await until(page, `${row('worker 1')}[data-masked]`);
        await page.press('c');
        await inPhase(page, 'worker 1', 'CancelRequested');
        await page.press('Enter');
        assert.equal(await focused(), 'do-mask');
        await page.press('Tab');
        assert.equal(await focused(), 'do-unmask');
        await sleep(500);
        assert.equal(await phaseOf(page, 'worker 1'), 'CancelRequested');
        await page.press('Space');
        await inPhase(page, 'worker 1', 'Completed');
        await page.press('Escape');
        assert.equal(await focused(), 'worker 1');
        await page.press('ArrowLeft');
        assert.equal(await focused(), 'region 1');
        await page.press('ArrowLeft');
        await until(page, `${row('region 1')}[aria-expanded=false]`);
        assert.equal(await page.evaluate((s) => document.querySelectorAll(s).length, '.row'), 2);
        await page.press('ArrowRight');
        await until(page, row('worker 1'));
        await page.press('x');
        await inPhase(page, 'region 1', 'Closed');
        await page.press('Home');
        assert.equal(await focused(), 'root');
        await page.press('End');
        assert.equal(await focused(), 'worker 1');
    }));

    /* ---- scenes ---------------------------------------------------------------------------------------- */

    it('each scene plays to its end, and its trace holds', async () => {
        const [shutdown, masked, cascade, abandoned, race] = await Promise.all([
            scene('shutdown', (page) => wentAllTheWay(page, 'flusher')),
            scene('masked', async (page) => {
                await wentAllTheWay(page, 'clerk');
                await wentAllTheWay(page, 'transfer');
                const log = await page.evaluate(() => globalThis.log);
                const steps = log.map(({ name, phase, masked }) => `${name} ${phase} ${masked ?? 0}`);
                assert.ok(steps.includes('transfer CancelRequested 1'));
                assert.ok(steps.indexOf('clerk Completed 0') < steps.indexOf('transfer Cancelling 0'));
            }),
            scene('cascade', async (page) => {
                await wentAllTheWay(page, 'sailor');
                await page.click(row('deck'));
                await saying(page, '#inspector .facts-list', 'DISCONNECT: the line is dead');
            }, { size: NARROW }),
            scene('abandoned', async (page) => {
                await until(page, '#notices .notice');
                await saying(page, '#notices', 'cellar closed without the stubborn one, which was abandoned');
                await saying(page, `${row('the stubborn one')} .facts`, 'abandoned'); /* drawn a frame later */
            }),
            scene('race', (page) => inPhase(page, 'regatta', 'Closed')),
        ]);
        const { door, guests, storage, service } = shutdown.ends;
        assert.ok(door.at <= guests.asked && guests.at <= storage.asked && storage.at <= service.at);
        assert.equal(door.status, 'ok');
        assert.ok(masked.ends.clerk.at < masked.ends.transfer.at);
        assert.equal(cascade.ends.fleet.kind, 'DISCONNECT');
        for (const name of ['squadron', 'ship', 'deck', 'sailor']) {
            assert.equal(cascade.ends[name].kind, 'PARENT', name);
        }
        const order = ['deck', 'ship', 'squadron', 'fleet'].map((name) => cascade.ends[name].at);
        assert.deepEqual(order, [...order].sort((a, b) => a - b));
        assert.equal(abandoned.ends.cellar.abandoned, 1);
        assert.equal(abandoned.ends['the reasonable one'].abandoned, 0);
        assert.equal(race.ends['green boat'].status, 'ok');
        for (const loser of ['red', 'blue']) {
            assert.equal(race.ends[`${loser} boat`].kind, 'RACE_LOST');
        }
    });

    /* ---- what the runtime refuses, and what is left behind --------------------------------------------- */

    it('a region that closes takes no more: what can\'t be done is disabled, and says why', () => onPage(async (page) => {
        await page.click('#do-region');
        await inPhase(page, 'region 1', 'Open');
        await page.click(row('region 1'));
        await page.click('#do-spawn');
        await inPhase(page, 'worker 1', 'Running');
        await page.click('#tempo [value=paused]'); /* or it may end before we have looked */
        await page.click('#do-close');
        await inPhase(page, 'region 1', 'Draining');
        for (const verb of ['spawn', 'region', 'close']) await until(page, `#do-${verb}[aria-disabled=true]`);
        await page.click('#do-spawn');
        await saying(page, '#status', 'Spawn: region 1 admits nothing any more.');
        assert.equal(await page.evaluate(() => document.querySelectorAll('.row').length), 3);
        assert.equal(await phaseOf(page, 'worker 1'), 'Running'); /* what runs may finish */
        await page.click('#tempo [value=live]');
        await inPhase(page, 'region 1', 'Closed');
        assert.equal(await textOf(page, `${row('worker 1')} .facts`), 'ok');
        assert.equal(await textOf(page, '#notices'), '');
    }));

    it('a failure cancels its siblings; a lease that one forgot is a leak', () => onPage(async (page) => {
        await page.click('#do-region');
        await inPhase(page, 'region 1', 'Open');
        await page.click(row('region 1'));
        await page.click('#do-spawn');
        await page.click('#do-spawn');
        await inPhase(page, 'worker 2', 'Running');
        for (const [name, commits] of [['worker 1', true], ['worker 2', false]]) {
            await page.click(row(name));
            await page.click('#do-hold');
            await saying(page, `${row(name)} .facts`, '1 lease');
            if (commits) await page.click('#do-commit');
        }
        await page.click(row('region 1'));
        await choose(page, '#choose-task', 'fails');
        await page.click('#do-spawn');
        await inPhase(page, 'region 1', 'Closed');
        assert.equal(await textOf(page, `${row('worker 1')} .facts`), 'cancelled · SIBLING_FAILED');
        assert.match(await textOf(page, `${row('worker 2')} .facts`), /SIBLING_FAILED · 1 leaked/);
        assert.match(await textOf(page, `${row('fails 1')} .facts`), /^failed/);
        const told = /region 1 closed with a failure: the hull is leaking \(fails 1\)/;
        assert.match(await textOf(page, '#notices'), told);
        await page.click(row('root'));
        await page.click('#do-spawn'); /* in the root nobody else hears of it */
        await saying(page, '#notices .bad', 'fails 2failed: the hull is leaking');
        await inPhase(page, 'root', 'Open');
        await verify(page);
    }));

    it('a notice goes by itself, by its button or by Escape; one with the focus stays', () => onPage(async (page) => {
        const none = (why) => page.waitFor(() => document.querySelector('.notice') === null, why);
        await choose(page, '#choose-task', 'fails');
        const fail = async () => {
            await page.click('#do-spawn');
            await until(page, '.notice.bad');
        };
        await fail();
        await none('one that goes by itself');
        await fail();
        await page.click('.dismiss');
        await none('one that was dismissed');
        await page.click(row('root'));
        await fail();
        await page.evaluate(() => document.querySelector('.dismiss').focus());
        await sleep(7000);
        await until(page, '.notice.bad');
        await page.press('Escape');
        await none('one that Escape dismissed');
        assert.equal(await page.evaluate(() => document.activeElement.dataset.name), 'root');
    }));

    it('a key that does not apply says why', () => onPage(async (page) => {
        const says = async (key, text) => {
            await page.press(key);
            await saying(page, '#status', text);
        };
        assert.equal(await page.evaluate(() => document.querySelector('#sweep').ariaDisabled), 'true');
        await page.click(row('root'));
        await says('m', 'Mask is for a task, and root is a region.');
        await page.press('s');
        await inPhase(page, 'worker 1', 'Running');
        assert.equal(await textOf(page, '#status'), '');
        await saying(page, `${row('worker 1')} .facts`, 'parked');
        await page.click(row('worker 1'));
        await says('x', 'Close is for a region, and worker 1 is a task.');
        await says('u', 'Unmask: worker 1 has no mask of yours.');
        await says('o', 'Commit it: worker 1 holds no lease.');
        await says('k', 'Checkpoint: worker 1 checks often anyway.');
        await page.press('c');
        await inPhase(page, 'worker 1', 'Completed');
        for (const [key, verb] of [['m', 'Mask'], ['h', 'Hold a lease'], ['c', 'Cancel'], ['f', 'Force']]) {
            await says(key, `${verb}: worker 1 has ended.`);
        }
        await saying(page, '[data-lane=ready] ul', 'ran last:worker 1');
        await page.click('#sweep');
        await until(page, '#sweep[aria-disabled=true]');
        await page.waitFor(() => !document.querySelector('#lanes').innerText.includes('ran last'), 'no names');
    }));

    it('the words are explained', () => onPage(async (page) => {
        await page.click('#ask');
        await until(page, '#words[open]');
        const words = await page.evaluate(() => Array.from(document.querySelectorAll('#words dt'),
            (dt) => dt.textContent).join(' '));
        for (const word of ['lane', 'parked', 'epoch', 'poll', 'owed', 'turn', 'batch', 'value']) {
            assert.ok(words.includes(word), word);
        }
        await page.press('Escape');
        await until(page, '#words:not([open])');
        assert.equal(await page.evaluate(() => document.activeElement.id), 'ask');
        assert.ok(await page.evaluate(() => document.querySelector('.facts-list dt[title*=queue]') !== null));
    }));

    it('one that does not look stays asked until it looks', () => onPage(async (page) => {
        await page.click('#do-spawn');
        await inPhase(page, 'worker 1', 'Running');
        await page.click(row('worker 1'));
        await page.click('#checks');
        await sleep(600); /* the wait that was a checkpoint is over */
        await choose(page, '#choose-cancel', 'DISCONNECT');
        await page.click('#do-cancel');
        await inPhase(page, 'worker 1', 'CancelRequested');
        await sleep(500);
        assert.equal(await phaseOf(page, 'worker 1'), 'CancelRequested');
        await page.click('#do-checkpoint');
        await wentAllTheWay(page, 'worker 1');
        assert.equal(await textOf(page, `${row('worker 1')} .facts`), 'cancelled · DISCONNECT');
    }));

    /* ---- the tempo ------------------------------------------------------------------------------------- */

    it('paused it stands still, and each step is a batch', () => onPage(async (page) => {
        const time = () => page.evaluate(() => globalThis.playground.run.time());
        await page.click('#tempo [value=paused]');
        assert.equal(await page.evaluate(() => document.querySelector('#step').ariaDisabled), 'true');
        await page.click('#do-spawn');
        await inPhase(page, 'worker 1', 'Created');
        const before = await time();
        await sleep(300);
        assert.equal(await time(), before);
        assert.equal(await phaseOf(page, 'worker 1'), 'Created');
        assert.match(await textOf(page, '[data-lane=ready]'), /worker 1/);
        assert.match(await textOf(page, '#pump-next'), /held: a microtask/);
        await page.click('#step');
        await inPhase(page, 'worker 1', 'Running');
        await page.click(row('worker 1'));
        await page.click('#do-cancel');
        await inPhase(page, 'worker 1', 'CancelRequested');
        assert.match(await textOf(page, '[data-lane=cancel]'), /worker 1/);
        const phases = [];
        for (let i = 0; i < 16 && phases.at(-1) !== 'Completed'; i++) {
            const steps = await page.evaluate(() => globalThis.playground.steps);
            await page.click('#step');
            await page.waitFor((n) => globalThis.playground.steps > n, 'a step', SOON_MS, steps);
            await page.waitFor(() => globalThis.playground.drawn, 'a frame');
            const phase = await phaseOf(page, 'worker 1');
            if (phase !== phases.at(-1)) phases.push(phase);
        }
        assert.deepEqual(phases, ['Cancelling', 'Finalizing', 'Completed']);
        assert.ok(await time() - before < 1500, 'time jumps to the next timer only');
        await page.click('#do-mask'); /* has ended: does nothing, and is no error */
        await page.click('#tempo [value=slow]');
        const rate = await page.evaluate(async () => {
            const [a, from] = [globalThis.playground.run.time(), performance.now()];
            await new Promise((resolve) => setTimeout(resolve, 500));
            return (globalThis.playground.run.time() - a) / (performance.now() - from);
        });
        assert.ok(Math.abs(rate - 0.1) < 0.01, `a tenth, not ${rate}`);
        await page.click(row('root'));
        await page.click('#do-spawn');
        await inPhase(page, 'worker 2', 'Running');
        await page.click(row('worker 2'));
        await page.click('#do-cancel');
        await inPhase(page, 'worker 2', 'Cancelling');
        const log = await page.evaluate(() => globalThis.log.filter(({ name }) => name === 'worker 2'));
        const seen = log.map(({ phase }) => phase);
        assert.deepEqual(seen, ['Created', 'Running', 'CancelRequested', 'Cancelling']);
        await page.click('#tempo [value=live]');
        await wentAllTheWay(page, 'worker 2');
        await verify(page);
    }));

    /* ---- ends ------------------------------------------------------------------------------------------ */

    it('when all has ended the page says so, and can start again', () => onPage(async (page) => {
        await page.click('#do-spawn');
        await inPhase(page, 'worker 1', 'Running');
        await choose(page, '#choose-cancel', 'SHUTDOWN');
        await page.click('#do-cancel');
        await inPhase(page, 'root', 'Closed');
        await until(page, 'body[data-state=ended]');
        assert.match(await textOf(page, '#still'), /The water is still/);
        await verify(page, '--quiescent');
        await page.click('#do-spawn');
        await saying(page, '#status', 'Spawn: root has ended.');
        await page.click('#again');
        await until(page, 'body[data-state=empty]');
        await page.click('#do-spawn');
        await inPhase(page, 'worker 1', 'Running');
    }));

    it('an instance that traps is shown as gone, its recordings are saved', () => onPage(async (page) => {
        await page.click('#do-spawn');
        await inPhase(page, 'worker 1', 'Running');
        await page.click('#trap');
        await until(page, 'body[data-state=crashed]');
        assert.match(await textOf(page, '#still-text'), /^EBB_TRAPPED: .*Its trace and its journal were/);
        const verbs = ':is([id^=do-], #trap):not([aria-disabled])';
        await page.waitFor((s) => document.querySelector(s) === null, 'no verb enabled', SOON_MS, verbs);
        await page.click('#do-spawn');
        await saying(page, '#status', 'the runtime is gone');
        await page.click('#trap');
        assert.equal(await textOf(page, '#notices'), '');
        await verify(page);
        await page.click('#still-again');
        await until(page, 'body[data-state=empty]');
        await page.waitFor(() => document.activeElement.dataset.name === 'root', 'the focus in the new tree');
        await page.click('#trap');
        await until(page, 'body[data-state=crashed]');
        await page.click('#scene-race'); /* begins a new run */
        await inPhase(page, 'regatta master', 'Running');
    }));

    /* ---- the trace, many tasks, and who can't see ------------------------------------------------------ */

    it('the trace can be filtered, walked through and looked at', () => onPage(async (page) => {
        await page.click('#do-spawn');
        await inPhase(page, 'worker 1', 'Running');
        await page.click(row('worker 1'));
        await page.click('#do-cancel');
        await inPhase(page, 'worker 1', 'Completed');
        await page.click('#only-cancel');
        await page.waitFor(() => document.querySelectorAll('.event:not([hidden])').length === 4, 'four');
        const types = () => Array.from(document.querySelectorAll('.event .type'), (e) => e.textContent);
        const four = (await page.evaluate(types)).slice(0, 4);
        assert.deepEqual(four, ['cancel_requested', 'cancel_acked', 'cleanup_done', 'finalized']);
        assert.equal(await page.evaluate(() => document.querySelector('#fields').checkVisibility()), false);
        await page.click('.raw summary');
        await page.click('.event:nth-of-type(2)');
        const fields = () => Object.fromEntries(Array.from(document.querySelectorAll('#fields div'),
            (pair) => [pair.firstChild.textContent, pair.lastChild.textContent]));
        const acked = await page.evaluate(fields);
        const eight = ['task_id', 'region_id', 'cancel_epoch', 'cancel_phase', 'cancel_kind', 'decision_seq',
            'host_turn_id', 'microtask_batch_id'];
        for (const name of eight) assert.notEqual(acked[name], '–', name);
        assert.equal(acked.cancel_phase, 'Cancelling');
        await until(page, `${row('worker 1')}.pointed`);
        await page.press('ArrowDown');
        assert.equal((await page.evaluate(fields)).cancel_phase, 'Finalizing');
        await until(page, '#events[aria-activedescendant^=event]');
    }));

    for (const scheme of ['light', 'dark']) {
        it(`${scheme}: all has a name, a focus that is seen, and can be read`, () => onPage(async (page) => {
            await page.click('#do-spawn');
            await inPhase(page, 'worker 1', 'Running');
            assert.deepEqual(await page.evaluate(complaints), []);
            const tree = await page.evaluate(() => [...document.querySelectorAll('#tree > *')].map((e) =>
                [e.role, e.ariaLevel, e.ariaPosInSet, e.ariaSetSize, e.tabIndex]));
            assert.deepEqual(tree, [['treeitem', '1', '1', '1', 0], ['treeitem', '2', '1', '1', -1]]);
            await page.evaluate(() => document.activeElement.blur());
            const seen = new Set();
            for (let i = 0; i < 60; i++) {
                await page.press('Tab');
                const { id, visible } = await page.evaluate(focusIn);
                if (seen.has(id)) break; /* once around */
                seen.add(id);
                assert.ok(visible, `the focus on ${id}`);
            }
            const wanted = ['live', 'step', 'again', 'ask', 'scene-race', 'sweep', 'root', 'choose-task',
                'do-spawn', 'do-region', 'do-close', 'choose-cancel', 'do-cancel', 'do-force', 'only-cancel',
                'save-trace', 'save-journal', 'events', 'source', 'source-run', 'source-reset'];
            assert.deepEqual(wanted.filter((id) => !seen.has(id)), []);
        }, { media: { 'prefers-color-scheme': scheme } }));
    }

    it('no page is too narrow for it: nothing has to be scrolled sideways', () => onPage(async (page) => {
        await page.click('#scene-cascade');
        await inPhase(page, 'another sailor', 'Running');
        for (const width of [390, 320, 768, 1280]) {
            await page.viewport({ width, height: 800 });
            const needs = await page.evaluate(() => document.documentElement.scrollWidth);
            assert.ok(needs <= width, `${needs} px of ${width}`);
            await page.evaluate(() => scrollTo(0, 0));
            await page.click(row('fleet'));
            const [{ top }, { bottom }] = await page.evaluate((...all) => all.map((s) =>
                document.querySelector(s).getBoundingClientRect().toJSON()), row('fleet'), '#inspector');
            assert.ok(top >= 0 && bottom <= 801, `the row and its buttons, ${top} to ${bottom}, at ${width}`);
        }
    }, { size: NARROW }));
});

describe('many', () => {
    it('two hundred tasks: the page stays quick and its lists short', () => onPage(async (page) => {
        await choose(page, '#choose-times', '50');
        for (let i = 0; i < 4; i++) await page.click('#do-spawn');
        await inPhase(page, 'worker 200', 'Running');
        const frames = () => page.evaluate(() => ({ ...globalThis.playground.frames }));
        const before = await frames();
        await sleep(1500);
        const now = await frames();
        const drawn = now.count - before.count;
        const mean = (now.ms - before.ms) / drawn;
        assert.ok(drawn > 20 && mean < 12, `${drawn} frames of ${mean.toFixed(1)} ms`);
        await page.click('#do-cancel');
        await until(page, 'body[data-state=ended]');
        await page.waitFor(() => document.querySelector('.row:not([data-status])') === null, 'the rows');
        const count = (s) => page.evaluate((each) => document.querySelectorAll(each).length, s);
        const kept = await page.evaluate(() => Number(document.querySelector('#events').dataset.events));
        assert.ok(kept >= 4000 && kept <= 4500, `${kept} events`);
        assert.ok(await count('.row') <= 201 && await count('.event') < 60);
        await page.click('#sweep');
        await page.waitFor(() => document.querySelectorAll('.row').length === 1, 'only the root');
        await verify(page, '--quiescent');
    }, { media: {} }));
});
