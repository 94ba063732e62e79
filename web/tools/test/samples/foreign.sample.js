import test from 'node:test';

test('asks elsewhere', () => fetch('http://elsewhere.example/').catch(() => {}));
