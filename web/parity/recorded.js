/*
 * A program that uses everything the package has, on the real event loop of whatever runs it, recorded. What it
 * leaves behind is replayed elsewhere.
 */
import { hostOf, Runtime } from '../ebb-web/index.js';

/** The host of a global object, with a count of what was asked of it. */
function countedHost(global) {
    const host = hostOf(global);
    const counts = { microtasks: 0, messages: 0, timers: 0 };
    const { queueMicrotask, setTimeout, MessageChannel } = host;
    host.queueMicrotask = (fn) => {
        counts.microtasks += 1;
        queueMicrotask(fn);
    };
    host.setTimeout = (fn, ms) => {
        counts.timers += 1;
        return setTimeout(fn, ms);
    };
    host.MessageChannel = class extends MessageChannel {
        constructor() {
            super();
            const post = this.port2.postMessage.bind(this.port2);
            this.port2.postMessage = (message) => {
                counts.messages += 1;
                post(message);
            };
        }
    };
    return { host, counts };
}

function pause(ms) {
    return new Promise((resolve) => {
        setTimeout(resolve, ms);
    });
}

/** Computes without a pause, as pages do. */
function busy(ms) {
    const end = performance.now() + ms;
    while (performance.now() < end);
}

async function worker(cx) {
    const lease = cx.reserve('lease');
    cx.defer(async () => {
        await cx.sleep(2);
    });
    for (let i = 0; i < 4; i++) {
        await cx.sleep(1);
        await cx.mask(() => cx.sleep(1));
    }
    lease.commit();
}

async function untilCancelled(cx) {
    const scope = cx.region({ name: 'scope' });
    scope.spawn(untilAsked);
    try {
        await cx.sleep(1e6);
    } finally {
        const cleanup = cx.region({ name: 'goodbye', cleanup: true });
        cleanup.spawn(async (inner) => inner.mask(() => inner.sleep(1)));
        await cleanup.join();
    }
}

async function untilAsked(cx) {
    for (;;) {
        cx.checkpoint();
        await cx.yield();
    }
}

async function hog(cx) {
    for (let i = 0; i < 20; i++) {
        busy(2);
        await cx.yield();
    }
}

async function leaks(cx) {
    cx.reserve('permit');
    await cx.yield();
}

/** Aborts from outside: a signal that was aborted before, one that is later, one with a timeout. */
async function aborted(rt) {
    const before = new AbortController();
    before.abort(new Error('before it began'));
    const later = new AbortController();
    const region = rt.region({ name: 'aborted', collect: true });
    const fence = region.reserve('fence');
    region.defer((cx) => cx.sleep(1).then(() => fence.commit()));
    region.spawn(untilAsked, { signal: before.signal });
    region.spawn(untilCancelled, { signal: later.signal });
    region.spawn(untilAsked, { signal: AbortSignal.timeout(8) });
    region.spawn(untilAsked, { timeout: 5 });
    setTimeout(() => later.abort(), 6);
    await region.join();
}

async function forced(rt) {
    const region = rt.region({ name: 'forced' });
    region.reserve('permit'); /* leaks */
    region.defer(() => {});
    region.spawn(() => new Promise(() => {}), { name: 'never' });
    region.spawn(untilCancelled);
    await pause(5);
    region.cancel({ kind: 'SHUTDOWN', message: 'the tab is closed', within: 20 });
    return region.done;
}

async function fails(rt) {
    const region = rt.region({ name: 'fails' });
    region.spawn(untilCancelled);
    region.spawn(async () => {
        throw new Error('on purpose');
    });
    await region.join().catch(() => {});
}

/** @returns {Promise<{ trace: Uint8Array, journal: Uint8Array, counts: object, stats: object }>} */
export async function record() {
    const { host, counts } = countedHost(globalThis);
    const rt = new Runtime(host, { trace: 1 << 22, journal: 1 << 22 });
    const work = rt.region({ name: 'work' });
    for (let i = 0; i < 20; i++) work.spawn(worker);
    for (let i = 0; i < 3; i++) work.spawn(hog);
    work.spawn(leaks);
    await Promise.all([work.join(), aborted(rt), forced(rt), fails(rt),
        rt.root.race([worker, untilCancelled, hog])]);
    await rt.close();
    return {
        trace: rt.takeTrace({ flush: true }),
        journal: rt.takeJournal({ flush: true }),
        counts,
        stats: rt.stats(),
    };
}
