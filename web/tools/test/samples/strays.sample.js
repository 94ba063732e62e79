/* Errors that nobody catches, while a test runs. */
import test from 'node:test';

const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

test('an error in a timer', async () => {
    setTimeout(() => { throw new Error('stray'); }, 1);
    await later(50);
});
test('a rejection', async () => {
    Promise.reject(new Error('lost'));
    await later(50);
});
test('after them, all is well', () => {});
test('one that comes as the test ends', () => {
    dispatchEvent(new ErrorEvent('error', { error: new Error('last') }));
});
test('is not held against the next', () => new Promise((resolve) => setTimeout(resolve, 20)));
