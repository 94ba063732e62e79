// only: node
import { readFileSync } from 'node:fs';
import test from 'node:test';

test('reads itself', () => readFileSync(new URL(import.meta.url)));
