import test from 'node:test';

test('ends', () => {});
test('never ends', () => { for (;;); });
