import test from 'node:test';

test('waits for nothing', () => new Promise(() => {}));
