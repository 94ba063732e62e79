import assert from 'node:assert/strict';
import test from 'node:test';

import { hears } from './hearing.js';
import { virtual } from './virtual-host.js';

const never = () => new Promise(() => {});

for (const [how, fn] of Object.entries({
    'a function that throws at once': () => {
        throw new RangeError('bad');
    },
    'an async function that throws later': async (cx) => {
        await cx.yield();
        throw new RangeError('bad');
    },
    'a function that returns a rejected promise': () => Promise.reject(new RangeError('bad')),
    'a function that returns a thenable that throws': () => ({
        then() {
            throw new RangeError('bad');
        },
    }),
})) {
    test(`${how} fails its task and its region with that error, and nothing else`, async (t) => {
        const { host, rt } = virtual(t);
        const region = rt.region();
        const failed = assert.rejects(region.done, RangeError);
        const other = rt.region().spawn(never);
        const task = region.spawn(fn);
        await host.settle();
        await assert.rejects(task.result, { name: 'RangeError', message: 'bad' });
        await failed;
        assert.equal(other.ended, false);
        assert.equal(rt.crash, undefined);
    });
}

for (const thrown of [undefined, null, 0, 'text', { code: 5 }, Symbol('s')]) {
    test(`a function that throws ${String(thrown)} fails its task`, async (t) => {
        const { host, rt } = virtual(t);
        const region = rt.region();
        region.done.catch(() => {});
        const task = region.spawn(() => {
            throw thrown;
        });
        await host.settle();
        const outcome = await task.result.then(() => 'resolved', (error) => ({ error }));
        assert.notEqual(outcome, 'resolved');
        if (thrown !== undefined && thrown !== null) assert.equal(outcome.error, thrown);
        await assert.rejects(async () => region.done);
    });
}

test('a finalizer that throws is its task\'s failure, and the others still run', async (t) => {
    const { host, rt } = virtual(t);
    const ran = [];
    const region = rt.region();
    region.done.catch(() => {});
    const task = region.spawn((cx) => {
        cx.defer(() => ran.push('first'));
        cx.defer(() => {
            ran.push('second');
            throw new RangeError('in a finalizer');
        });
        cx.defer(async () => {
            await cx.yield();
            ran.push('third');
        });
        return 'all was well';
    });
    await host.settle();
    assert.deepEqual(ran, ['third', 'second', 'first']);
    await assert.rejects(task.result, { message: 'in a finalizer' });
    await assert.rejects(region.done, { message: 'in a finalizer' });
});

test('a finalizer of a cancelled task that throws is in the report of its region', async (t) => {
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn(async (cx) => {
        cx.defer(() => {
            throw new RangeError('in a finalizer');
        });
        await cx.sleep(100);
    });
    await host.settle();
    task.cancel('stop');
    await host.settle();
    await assert.rejects(task.result, { kind: 'USER' });
    const { suppressed } = await host.until(region.close());
    assert.deepEqual(suppressed.map(({ message }) => message), ['in a finalizer']);
});

test('a hook of an obligation that throws is heard, and the abort is done all the same', async (t) => {
    const heard = hears(t);
    const { host, rt } = virtual(t);
    const region = rt.region();
    const task = region.spawn((cx) => {
        const obligation = cx.reserve('permit', () => {
            throw new RangeError('in a hook');
        });
        obligation.abort();
        assert.throws(() => obligation.commit(), { code: 'EBB_ERR_RESOLVED' });
        cx.reserve('lease', () => {
            throw new RangeError('in the hook of a leak');
        });
        return 'done';
    });
    await host.settle();
    assert.equal(await task.result, 'done');
    assert.deepEqual((await heard(2)).map(({ error }) => error.message),
        ['in a hook', 'in the hook of a leak']);
    assert.equal((await host.until(region.close())).leaked.length, 1);
});

test('a listener of cx.signal that throws is heard by the host; the task ends as it should', async (t) => {
    const heard = hears(t);
    const { host, rt } = virtual(t);
    const log = [];
    const task = rt.region().spawn(async (cx) => {
        cx.signal.addEventListener('abort', () => {
            throw new RangeError('in an abort listener');
        });
        cx.signal.addEventListener('abort', () => log.push('the next one runs'));
        await cx.sleep(100);
    });
    await host.settle();
    task.cancel('stop');
    await host.settle();
    await assert.rejects(task.result, { kind: 'USER' });
    assert.deepEqual(log, ['the next one runs']);
    assert.deepEqual((await heard(1)).map(({ error }) => error.message), ['in an abort listener']);
    assert.equal(rt.crash, undefined);
});

test('a listener of cx.on that throws is heard by the host, and the task goes on', async (t) => {
    const heard = hears(t);
    const { host, rt } = virtual(t);
    const target = new EventTarget();
    const task = rt.region().spawn(async (cx) => {
        cx.on(target, 'tick', () => {
            throw new RangeError('in a listener');
        });
        await cx.once(target, 'stop');
        return 'went on';
    });
    await host.settle();
    target.dispatchEvent(new Event('tick'));
    target.dispatchEvent(new Event('stop'));
    await host.settle();
    assert.equal(await task.result, 'went on');
    assert.deepEqual((await heard(1)).map(({ error }) => error.message), ['in a listener']);
});

test('an addEventListener that throws fails the wait; a removeEventListener is heard', async (t) => {
    const heard = hears(t);
    const { host, rt } = virtual(t);
    const region = rt.region({ collect: true });
    region.done.catch(() => {});
    const refuses = {
        addEventListener() {
            throw new RangeError('no listeners here');
        },
    };
    const keeps = {
        addEventListener(type, listener) {
            this.listener = listener;
        },
        removeEventListener() {
            throw new RangeError('and none go');
        },
    };
    const refused = region.spawn((cx) => cx.once(refuses, 'x'));
    const on = region.spawn((cx) => void cx.on(keeps, 'x', () => {}));
    const once = region.spawn((cx) => cx.once(keeps, 'x'));
    await host.settle();
    keeps.listener('the event');
    await host.settle();
    await assert.rejects(refused.result, { message: 'no listeners here' });
    assert.equal(await on.result, undefined);
    assert.equal(await once.result, 'the event');
    assert.deepEqual((await heard(2)).map(({ error }) => error.message), ['and none go', 'and none go']);
    await assert.rejects(host.until(region.join()), { message: 'no listeners here' });
});

test('a host\'s fetch that throws, at once or later, is the task\'s failure', async (t) => {
    const now = () => {
        throw new TypeError('now');
    };
    const later = () => Promise.reject(new TypeError('later'));
    for (const fetch of [now, later]) {
        const { host, rt } = virtual(t, { capabilities: { fetch } });
        const region = rt.region();
        region.done.catch(() => {});
        const task = region.spawn((cx) => cx.fetch('/'));
        await host.settle();
        await assert.rejects(task.result, TypeError);
    }
});

test('after all of that the same runtime still works', async (t) => {
    const { host, rt } = virtual(t);
    for (let i = 0; i < 50; i++) {
        const region = rt.region();
        region.done.catch(() => {});
        region.spawn(() => {
            throw new Error(`${i}`);
        });
        region.spawn((cx) => cx.sleep(1000));
    }
    await host.settle();
    const task = rt.region().spawn(() => 'works');
    await host.settle();
    assert.equal(await task.result, 'works');
    assert.equal(rt.stats().tasks, 0);
});

test('a signal whose removeEventListener throws keeps nobody from ending', async (t) => {
    const heard = hears(t);
    const { host, rt } = virtual(t);
    const signal = new AbortController().signal;
    signal.removeEventListener = () => {
        throw new RangeError('none go');
    };
    const region = rt.region({ signal });
    const task = region.spawn(() => 'ended', { signal });
    await host.settle();
    assert.equal(await task.result, 'ended');
    assert.equal((await host.until(region.close())).status, 'ok');
    assert.deepEqual((await heard(1)).map(({ error }) => error.message), ['none go']);
});
