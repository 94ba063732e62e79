import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

import { ALLOWED } from '../allowed.js';
import { NAMED } from '../named.js';
import { candidates, changed, ranked } from '../random.js';

test('every named mistake changes its file, in one place', () => {
    assert.ok(NAMED.length >= 20);
    assert.equal(new Set(NAMED.map(({ name }) => name)).size, NAMED.length);
    for (const mutant of NAMED) {
        const text = readFileSync(mutant.file, 'utf8');
        assert.notEqual(changed(text, mutant), text, mutant.name);
    }
    assert.throws(() => changed('a a', { name: 'twice', from: 'a', to: 'b' }), /twice: expected its text once: a/);
});

test('what is allowed is a change that can be made, with a reason', () => {
    for (const { file, was, is, why } of ALLOWED) {
        const found = candidates([{ file, text: readFileSync(file, 'utf8') }]);
        assert.ok(found.some((each) => each.was === was && each.is === is), `${file}: ${was}`);
        assert.ok(why.length > 20);
    }
});

const SOURCE = { file: 'x.js', text: `/* a === 1 */
import { a } from './b.js';
function f() {
    if (a === 1 && b < 2) return 3;
    await g(4);
    this.#x = h();
}` };

test('a source is changed at comparisons, awaits, constants and statements, not in comments', () => {
    const found = candidates([SOURCE]);
    const of = (name) => found.filter((each) => each.name === name).map(({ line, is }) => `${line} ${is}`);
    assert.deepEqual(of('flips a comparison'), ['4 if (a !== 1 && b < 2) return 3;', '4 if (a === 1 && b >= 2) return 3;']);
    assert.deepEqual(of('swaps and for or'), ['4 if (a === 1 || b < 2) return 3;']);
    assert.deepEqual(of('drops an await'), ['5 g(4);']);
    assert.equal(of('changes a constant').length, 4);
    assert.deepEqual(of('drops a statement'), ['6 ;']);
    for (const mutant of found) assert.notEqual(changed(SOURCE.text, mutant), SOURCE.text);
});

test('the order depends on the seed and the line alone', () => {
    const all = candidates([SOURCE]);
    const more = candidates([{ ...SOURCE, text: `// one line more\n${SOURCE.text}` }]);
    const names = (list, seed) => ranked(list, seed).map(({ is }) => is);
    assert.deepEqual(names(all, '1'), names(more, '1'));
    assert.notDeepEqual(names(all, '1'), names(all, '2'));
});
