import assert from 'node:assert/strict';
import test from 'node:test';

test('is right', () => {});
test('is wrong', () => {
    console.log('on the way');
    assert.equal(1 + 1, 3);
});
