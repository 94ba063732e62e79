import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

describe('arithmetic', () => {
    it('adds', (t) => {
        t.diagnostic('one and one');
        assert.equal(1 + 1, 2);
    });
    it('is skipped', { skip: 'today' }, () => assert.fail());
});
