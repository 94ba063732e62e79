/* Errors that nobody catches, while a test runs. */
import test from 'node:test';

/* The framework's listener is older, and judges an error in a timer that it sets: ours is set after that. */
const reported = (name) => new Promise((resolve) => {
    addEventListener(name, () => setTimeout(resolve), { once: true });
});

test('an error in a timer', async () => {
    setTimeout(() => { throw new Error('stray'); }, 1);
    await reported('error');
});
test('a rejection', async () => {
    Promise.reject(new Error('lost'));
    await reported('unhandledrejection');
});
test('after them, all is well', () => {});
test('one that comes as the test ends', () => {
    dispatchEvent(new ErrorEvent('error', { error: new Error('last') }));
});
test('is not held against the next', () => new Promise((resolve) => setTimeout(resolve, 20)));
