/* The numbers of the plots, from what the service tells. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { Series, quantile } from '../series.js';

const none = Array(20).fill(0);
const at = (i, n) => none.map((x, k) => (k === i ? n : x));
const loop = (seconds, requests, times, polls = none, since = 1) => ({
    now_ns: seconds * 1e9, http: { requests, times }, worker: { turns: 2 * requests, cancel_times: [] },
    measured: { times: polls, since_ns: since },
});

describe('a quantile', () => {
    it('is in the class that the share falls into', () => {
        const counts = at(11, 98); /* from 1.024 to 2.048 us */
        counts[19] = 2;
        assert.ok(quantile(counts, 0.5) > 0.001024 && quantile(counts, 0.5) < 0.002048);
        assert.ok(quantile(counts, 0.99) > 0.262144 && quantile(counts, 0.99) < 0.524288);
    });

    it('of nothing is no number', () => assert.ok(Number.isNaN(quantile(none, 0.5))));
});

describe('the series', () => {
    it('has the rates and the times of what came since the last numbers', () => {
        const s = new Series();
        s.add(loop(10, 100, at(5, 100)), 0);
        s.add(loop(12, 300, none.map((_, i) => (i === 5 ? 100 : i === 18 ? 200 : 0))), 2000);
        assert.equal(s.points.length, 1);
        const [p] = s.points;
        assert.equal(p.requests, 100);
        assert.equal(p.turns, 200);
        assert.ok(p.request50 > 0.131072, 'the first hundred are not counted again');
        assert.ok(Number.isNaN(p.cancel50));
    });

    it('begins again with a service that has begun again', () => {
        const s = new Series();
        s.add(loop(10, 100, at(5, 100)), 0);
        s.add(loop(1, 3, at(5, 3)), 1000);
        assert.equal(s.points.length, 0);
        s.add(loop(2, 5, at(5, 5)), 2000);
        assert.equal(s.points[0].requests, 2);
    });

    it('counts polls from the begin of a measuring on', () => {
        const s = new Series();
        s.add(loop(1, 0, none, at(3, 50), 1), 0);
        s.add(loop(2, 0, none, at(18, 10), 2), 1000);
        assert.ok(s.points[0].poll50 > 0.131072);
    });

    it('keeps ten minutes', () => {
        const s = new Series();
        for (let i = 0; i < 700; i++) s.add(loop(i, i, none), i * 1000);
        assert.ok(s.points.length <= 601 && s.points.length > 595);
    });
});
