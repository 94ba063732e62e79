/* Nobody is there any more to be failed by it. */
import test from 'node:test';

test('leaves something behind', () => {});
await new Promise((resolve) => setTimeout(resolve, 1));
setTimeout(() => { throw new Error('left behind'); });
await new Promise((resolve) => setTimeout(resolve, 20));
