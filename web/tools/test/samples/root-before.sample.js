import test, { before } from 'node:test';

before(() => { throw new Error('no ground to stand on'); });
test('never runs', () => { throw new Error('has run'); });
