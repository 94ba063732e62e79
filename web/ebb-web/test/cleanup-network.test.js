/* Cleaning up may use the network: the signal of a fetch under a mask aborts at force, not at the cancel. */
import assert from 'node:assert/strict';
import test from 'node:test';

import { virtual } from './virtual-host.js';

/** A network whose answers take `ms` of the virtual host's time, and which hears of an abort. */
function network(host, ms) {
    const log = [];
    const fetch = (url, { signal }) => new Promise((resolve, reject) => {
        if (signal.aborted) {
            reject(signal.reason);
            return;
        }
        log.push(`asked ${url}`);
        signal.addEventListener('abort', () => {
            log.push(`aborted ${url}`);
            reject(signal.reason);
        });
        host().capabilities.setTimeout(() => {
            log.push(`answered ${url}`);
            resolve(url);
        }, ms);
    });
    return { fetch, log };
}

const places = {
    'in finally under a mask': async (cx) => {
        try {
            await cx.sleep(1e6);
        } finally {
            await cx.mask(() => cx.fetch('/undo'));
        }
    },
    'in a finalizer': async (cx) => {
        cx.defer(() => cx.fetch('/undo'));
        await cx.sleep(1e6);
    },
    'with a signal of its own': async (cx) => {
        cx.defer(() => cx.fetch('/undo', { signal: new AbortController().signal }));
        await cx.sleep(1e6);
    },
    'in a cleanup region': async (cx) => {
        try {
            await cx.sleep(1e6);
        } finally {
            await cx.mask(async () => {
                const own = cx.region({ cleanup: true });
                own.spawn((c) => c.fetch('/undo'));
                await cx.wait(own.join());
            });
        }
    },
};

for (const [where, body] of Object.entries(places)) {
    const cancelled = async (t, ms) => {
        let host;
        const { fetch, log } = network(() => host, ms);
        const made = virtual(t, { capabilities: { fetch } });
        ({ host } = made);
        const region = made.rt.region();
        region.spawn(async (cx) => {
            cx.signal.addEventListener('abort', () => log.push('cancelled'));
            await body(cx);
        });
        await host.settle();
        region.cancel({ within: 1000 });
        return { report: await host.until(region.done), log };
    };

    test(`cx.fetch works after a cancel ${where}`, async (t) => {
        const { report, log } = await cancelled(t, 100);
        assert.deepEqual(log, ['cancelled', 'asked /undo', 'answered /undo']);
        assert.deepEqual([report.status, report.forced], ['cancelled', []]);
    });

    test(`cx.fetch after a cancel ${where} is aborted when the budget is over, and the report says so`, async (t) => {
        const { report, log } = await cancelled(t, 5000);
        assert.deepEqual(log.slice(0, 3), ['cancelled', 'asked /undo', 'aborted /undo']);
        assert.notEqual(report.counts.forced, 0);
    });
}

test('cx.signal that is read under a mask after a cancel is for the cleanup: it aborts at force', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const seen = [];
    region.spawn(async (cx) => {
        const first = cx.signal;
        await cx.sleep(1e6).catch(() => {});
        let second;
        await cx.mask(async () => {
            second = cx.signal;
            await cx.sleep(1);
            seen.push(first.aborted, second.aborted, second === cx.signal);
        });
        await cx.sleep(1).catch(() => {});
        seen.push(second.aborted, cx.signal === first);
        second.addEventListener('abort', () => seen.push('forced'));
        await cx.mask(() => new Promise(() => {}));
    });
    await host.settle();
    region.cancel('stop');
    await host.until(region.done);
    assert.deepEqual(seen, [true, false, true, false, true, 'forced']);
});

test('a signal of the caller\'s that served a fetch before the cancel serves one of the cleanup too', async (t) => {
    let host;
    const { fetch, log } = network(() => host, 10);
    const made = virtual(t, { capabilities: { fetch } });
    ({ host } = made);
    const region = made.rt.region();
    region.spawn(async (cx) => {
        const { signal } = new AbortController();
        cx.defer(() => cx.fetch('/undo', { signal }));
        await cx.fetch('/before', { signal });
        await cx.sleep(1e6);
    });
    await host.pass(20);
    region.cancel('stop');
    assert.deepEqual((await host.until(region.done)).forced, []);
    assert.deepEqual(log.filter((line) => line.endsWith('/undo')), ['asked /undo', 'answered /undo']);
});
