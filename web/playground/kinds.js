/**
 * What can be spawned. Each kind is a plain async function over `cx`, as anybody would write it; the desk is
 * only there so that a person can interfere.
 */
const BEAT_MS = 400;

/** Finishes what it has when its region closes, and cleans up in its `finally` when it is cancelled. */
async function worker(cx, desk) {
    cx.defer(() => cx.sleep(500));
    try {
        for (let left = Infinity; left > 0; left--) {
            await desk.beat(cx, BEAT_MS);
            if (left === Infinity && cx.stopping && !cx.asked) left = 4;
        }
    } finally {
        if (cx.asked && !cx.task.ended) await cx.mask(() => cx.sleep(700));
    }
}

/** Gives its lease back while it is cancelled, and commits it when it may finish. */
async function leaseholder(cx, desk) {
    const lease = cx.reserve('lease');
    desk.leases.push(lease);
    const holds = () => desk.leases.includes(lease);
    try {
        await worker(cx, desk);
        if (holds()) lease.commit();
    } catch (error) {
        await cx.mask(() => cx.sleep(600));
        if (holds()) lease.abort();
        throw error;
    }
}

async function slowCleaner(cx, desk) {
    cx.defer(() => cx.sleep(2000));
    for (;;) await desk.beat(cx, BEAT_MS);
}

/** Waits for something of its own, and never looks whether it should stop. */
async function stubborn() {
    await new Promise(() => {});
}

/** What those that fail throw: a failure in the root region is nobody's, and comes to the page. */
export class Wreck extends Error {
    constructor(who, message) {
        super(message);
        this.who = who;
    }

    get name() {
        return 'Wreck';
    }
}

async function failing(cx, desk) {
    for (let i = 0; i < 4; i++) await desk.beat(cx, BEAT_MS);
    throw new Wreck(cx.task.name, 'the hull is leaking');
}

/** The losers are asked to stop, and have cleaned up before the race is over. */
async function race(cx, desk, enter) {
    const own = cx.region({ name: `${cx.task.name}'s own` });
    own.done.catch(() => {}); /* the race tells */
    const runner = (place, ms) => enter(`${place} boat`, async (lane, its) => {
        try {
            for (let left = ms; left > 0; left -= BEAT_MS) await its.beat(lane, Math.min(left, BEAT_MS));
            return place;
        } finally {
            if (lane.asked) await lane.mask(() => lane.sleep(500 + ms / 6));
        }
    });
    const three = [runner('red', 4400), runner('green', 3000), runner('blue', 5200)];
    return cx.wait(own.race(three, { name: 'heat' }));
}

/** In the order in which they are offered. `timeout`: it has a deadline, so it runs in the timed lane. */
export const KINDS = {
    worker: { label: 'worker', hint: 'works in a loop; every wait is a checkpoint', run: worker },
    clock: { label: 'on the clock', hint: 'a worker with a deadline of 4 s', run: worker, timeout: 4000 },
    lease: { label: 'holds a lease', hint: 'an obligation: committed or given back', run: leaseholder },
    slow: { label: 'slow to clean up', hint: 'its finalizer takes 2 s', run: slowCleaner },
    stubborn: { label: 'stubborn', hint: 'never looks: is abandoned when forced', run: stubborn },
    fails: {
        label: 'fails', hint: 'after 1.6 s; its siblings are cancelled, but not in the root', run: failing,
    },
    race: { label: 'race of three', hint: 'the losers are drained', run: race },
};
