/* A test that hears for itself what nobody catches, as the page lets it. */
import assert from 'node:assert/strict';
import test from 'node:test';

test('hears what nobody catches', async (t) => {
    const heard = [];
    let all;
    const both = new Promise((resolve) => { all = resolve; });
    const hear = (event) => {
        event.preventDefault();
        if (heard.push((event.error ?? event.reason).message) === 2) all();
    };
    for (const name of ['error', 'unhandledrejection']) {
        addEventListener(name, hear);
        t.after(() => removeEventListener(name, hear));
    }
    setTimeout(() => { throw new Error('thrown'); });
    Promise.reject(new Error('rejected'));
    await both;
    assert.deepEqual(heard.sort(), ['rejected', 'thrown']);
});
