/* A failure is heard once somebody handles it: at the task's result, or at the region's done. */
import assert from 'node:assert/strict';
import test from 'node:test';

import { hears } from './hearing.js';
import { virtual } from './virtual-host.js';

const fails = (message, ms = 1) => async (cx) => {
    await cx.sleep(ms);
    throw new Error(message);
};

/** What is heard of a program whose region stays open. */
async function program(t, options, act) {
    const heard = hears(t);
    const { host, rt } = virtual(t);
    const region = rt.region(options);
    act(region);
    await host.pass(10);
    return (await heard(0)).map(({ error }) => error.message);
}

const unheard = {
    'reads the result and drops it': (region) => void region.spawn(fails('boom')).result,
    'takes the result apart': (region) => {
        const { result } = region.spawn(fails('boom'));
        return result;
    },
    'drops what join returns': (region) => {
        region.spawn(fails('boom'));
        region.join();
    },
    'only looks at done': (region) => {
        region.spawn(fails('boom'));
        return region.done;
    },
    'handles the value of the result alone': (region) => void region.spawn(fails('boom')).result.then(() => {}),
};
const handled = {
    'catches the result': (region) => void region.spawn(fails('boom')).result.catch(() => {}),
    'awaits the result': (region) => {
        (async () => {
            try {
                await region.spawn(fails('boom')).result;
            } catch {
                /* expected */
            }
        })();
    },
    'has the result in allSettled': (region) => void Promise.allSettled([region.spawn(fails('boom')).result]),
    'catches join': (region) => {
        region.spawn(fails('boom'));
        region.join().catch(() => {});
    },
};

for (const options of [{}, { collect: true }]) {
    const kind = options.collect ? 'collect' : 'fail fast';
    for (const [what, act] of Object.entries(unheard)) {
        test(`${kind}: a program that ${what} hears nothing, so the host does, once`, async (t) => {
            assert.deepEqual(await program(t, options, (region) => void act(region)), ['boom']);
        });
    }
    for (const [what, act] of Object.entries(handled)) {
        test(`${kind}: a program that ${what} hears the failure`, async (t) => {
            assert.deepEqual(await program(t, options, act), []);
        });
    }
}

test('collect: to hear A at its task does not silence B', async (t) => {
    assert.deepEqual(await program(t, { collect: true }, (region) => {
        region.spawn(fails('A')).result.catch(() => {});
        region.spawn(fails('B', 2));
        region.join();
    }), ['B']);
});

test('collect: join rejects with the failure that nobody has heard of at its task', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region({ collect: true });
    region.spawn(fails('A')).result.catch(() => {});
    region.spawn(fails('B', 2));
    await assert.rejects(host.until(region.join()), { message: 'B' });
    assert.deepEqual(region.report.failures.map(({ message }) => message), ['A', 'B']);
});

test('collect: a failure in a region that goes on is told at once', async (t) => {
    const heard = hears(t);
    const { host, rt } = virtual(t);
    const region = rt.region({ collect: true });
    region.spawn((cx) => cx.sleep(1000));
    region.spawn(fails('at once'));
    await host.pass(5);
    assert.deepEqual((await heard(1)).map(({ error }) => error.message), ['at once']);
    assert.equal(region.ended, false);
    region.done.catch(() => {});
});
