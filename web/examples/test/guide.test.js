// What the guide shows is what the tests run: each of its programs is the file that stands above it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

const guide = readFileSync(new URL('../../ebb-web/GUIDE.md', import.meta.url), 'utf8');
const shown = [...guide.matchAll(/^`([\w./-]+)`:\n\n```js\n([^]*?)^```/gm)].map(([, name, code]) => ({ name, code }));

test('every block of code in the guide is named after its file', () => {
    assert.equal(shown.length, [...guide.matchAll(/^```js/gm)].length);
    assert.deepEqual(shown.map(({ name }) => name), ['search-box.js', 'upload.js', 'widgets.js', 'primes.js',
        'primes-worker.js', 'shared/debounce.js', 'shared/debounce.spec.js']);
});

for (const { name, code } of shown) {
    test(`${name} in the guide is the file`, () => {
        assert.equal(code, readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'));
    });
}
