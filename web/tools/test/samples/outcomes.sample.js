/* Every way in which a test can end. */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it, test } from 'node:test';

const boom = () => { throw new Error('boom'); };
const later = (ms, value) => new Promise((resolve) => setTimeout(resolve, ms, value));

test('passes', () => {});
test('passes later', () => later(5));
test('no function');
test(function named() {});
test(() => {});
test('throws', boom);
test('throws text', () => { throw 'text'; });
test('throws undefined', () => { throw undefined; });
test('rejects', async () => { await later(2); boom(); });
test('rejects with null', () => Promise.reject(null));
test('asserts', () => assert.deepEqual({ a: 1 }, { a: 2 }));
test('asserts nothing', () => assert.throws(() => {}));
test('times out', { timeout: 30 }, () => later(3000));
test('in time', { timeout: 5000 }, () => later(1));
test('callback', (t, done) => setTimeout(done, 1));
test('callback with an error', (t, done) => setTimeout(done, 1, new Error('no')));
test('callback and promise', async (t, done) => done());

test('skipped', { skip: true }, boom);
test('skipped for a reason', { skip: 'the reason' }, boom);
test('not skipped', { skip: false }, () => {});
test('skips itself', (t) => t.skip('so'));
test.skip('test.skip', boom);
test('todo that fails', { todo: true }, boom);
test('todo that passes', { todo: 'soon' }, () => {});
test.todo('test.todo');

test('a subtest fails', async (t) => { await t.test('sub', boom); });
test('both fail', async (t) => { await t.test('sub', boom); boom(); });
test('subtests pass', async (t) => {
    await t.test('one', () => {});
    await t.test('two', async (sub) => { await sub.test('three', () => {}); });
    assert.equal(t.name, 'subtests pass');
});
test('a subtest is not awaited', (t) => { t.test('sub', () => later(20)); });
test('a test() in a test', async () => { await test('is a subtest', () => {}); });

test('t.after throws', (t) => t.after(boom));
describe('before throws', () => { before(boom); it('never runs', () => {}); });
describe('beforeEach throws', () => { beforeEach(boom); it('never runs', () => {}); });
describe('afterEach throws', () => { afterEach(boom); it('has run', () => {}); });
describe('after throws', () => { after(boom); it('has run', () => {}); });
describe('the suite throws', () => { it('never runs', () => {}); boom(); });
describe('empty suite', () => {});
describe('deep', () => {
    describe('down', () => {
        it('passes', () => {});
        it('fails', boom);
        it.skip('is skipped', boom);
    });
});
describe.skip('skipped suite', () => { it('never runs', boom); });
describe('skipped suite with a reason', { skip: 'why' }, () => { it('never runs', boom); });
