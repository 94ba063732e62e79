import assert from 'node:assert/strict';
import test from 'node:test';

import { assertCancelEvents } from './contract.js';
import { runProgram } from './programs.js';

const PROGRAMS = 300;
const HAPPENS = ['cancel_strengthened', 'masked', 'finalizer_done', 'obligation_leaked',
    'obligation_committed', 'obligation_aborted', 'abandoned', 'task_forced', 'stale_wake',
    'timer_fired', 'refused', 'finalized'];

test(`${PROGRAMS} random programs: all of them end, and leave nothing`, async (t) => {
    const seen = new Set();
    let [tasks, cancels, leaks, abandoned] = [0, 0, 0, 0];
    for (let seed = 1; seed <= PROGRAMS; seed++) {
        const { rt } = await runProgram(seed);
        const events = rt.events();
        cancels += assertCancelEvents(events);
        events.forEach(({ type }) => seen.add(type));
        const stats = rt.stats();
        tasks += stats.spawned;
        leaks += stats.leaks;
        abandoned += stats.abandoned;
    }
    t.diagnostic(`${tasks} tasks, ${cancels} cancel events, ${leaks} leaks, ${abandoned} abandoned`);
    assert.ok(tasks > 5 * PROGRAMS && cancels > 10 * PROGRAMS && leaks > 10 && abandoned > 10,
        'they are rich enough');
    for (const type of HAPPENS) assert.ok(seen.has(type), `some program has a ${type}`);
});

test('the same program is the same run, event for event', async () => {
    for (let seed = 1; seed <= 20; seed++) {
        const runs = [];
        for (let i = 0; i < 2; i++) {
            const { rt } = await runProgram(seed);
            const local = (id) => (id >> 56n === BigInt(rt.id) ? id & (1n << 56n) - 1n : id);
            const plain = ({ taskId, regionId, other, ...rest }) => [
                rest, local(taskId), local(regionId), local(other),
            ];
            runs.push(rt.events().map(plain));
        }
        assert.deepEqual(runs[0], runs[1], `seed ${seed}`);
    }
});
