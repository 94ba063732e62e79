/* The order in which hooks and tests run; the last test holds it. That of the afterEach of several levels is
 * left out: it is not the same in all versions of Node. */
import assert from 'node:assert/strict';
import test, { after, afterEach, before, beforeEach, describe, it } from 'node:test';

const log = [];
const say = (text) => () => void log.push(text);

/* Neighbours of that kind in an order of ours. */
function levelled(steps) {
    const kind = (step) => step.includes('afterEach');
    return steps.reduce((runs, step, i) => {
        if (i && kind(step) && kind(steps[i - 1]))
            runs.at(-1).push(step);
        else
            runs.push([step]);
        return runs;
    }, []).flatMap((run) => run.sort());
}

before(say('before'));
after(say('after'));
beforeEach((t) => log.push(`beforeEach ${t.name}`));
afterEach((t) => log.push(`afterEach ${t.name}`));

describe('outer', () => {
    before(say('outer before'));
    after(say('outer after'));
    beforeEach(say('outer beforeEach'));
    afterEach(say('outer afterEach'));
    it('first', say('first'));
    describe('inner', () => {
        before(say('inner before'));
        after(async () => say('inner after')());
        beforeEach(say('inner beforeEach'));
        afterEach(say('inner afterEach'));
        it('second', async () => {
            await new Promise((resolve) => setTimeout(resolve, 5));
            log.push('second');
        });
    });
});

test('with subtests', async (t) => {
    t.beforeEach(say('t beforeEach'));
    t.after(say('t after 1'));
    t.after(say('t after 2'));
    await t.test('sub', say('sub'));
    log.push('with subtests');
});

test('with a callback', (t, done) => setTimeout(done, 1));

test('the order', () => {
    assert.deepEqual(levelled(log), levelled([
        'before',
        'outer before',
        'beforeEach first', 'outer beforeEach', 'first', 'outer afterEach', 'afterEach first',
        'inner before',
        'beforeEach second', 'outer beforeEach', 'inner beforeEach', 'second',
        'inner afterEach', 'outer afterEach', 'afterEach second',
        'inner after',
        'outer after',
        'beforeEach with subtests', 'beforeEach sub', 't beforeEach', 'sub', 'afterEach sub', 'with subtests',
        'afterEach with subtests', 't after 1', 't after 2',
        'beforeEach with a callback', 'afterEach with a callback',
        'beforeEach the order',
    ]));
});
