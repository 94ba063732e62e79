/* A file may wait for its tests, and for other things between them: each test stays one of the file's. */
import assert from 'node:assert/strict';
import test from 'node:test';

let made = 0;
test('made first', async () => {
    made++;
    await new Promise((resolve) => setTimeout(resolve, 30));
});
await new Promise((resolve) => setTimeout(resolve, 10));
test('made while another may run', () => void made++);
const result = await test('awaited', () => 5);
assert.equal(result, undefined);
assert.equal(made, 2);
await new Promise((resolve) => setTimeout(resolve, 10));
test('made after it', () => {});
