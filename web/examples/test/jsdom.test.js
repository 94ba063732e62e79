// A runtime on a jsdom window: errors, events and signals there are of another realm than the package.
import assert from 'node:assert/strict';
import test from 'node:test';
import { MessageChannel } from 'node:worker_threads';

import { Runtime, hostOf } from 'ebb-web';
import { JSDOM } from 'jsdom';

test('a runtime on the window of jsdom: events, aborts and failures of its realm', async (t) => {
    const { window } = new JSDOM('<button>go</button>', { runScripts: 'outside-only' });
    t.after(() => window.close());
    const rt = new Runtime({ ...hostOf(window), MessageChannel, page: window });
    const region = rt.region({ collect: true });
    const button = window.document.querySelector('button');
    const clicked = region.spawn((cx) => cx.once(button, 'click'));
    const controller = new window.AbortController();
    const aborted = region.spawn((cx) => cx.sleep(60_000), { signal: controller.signal });
    const failed = region.spawn(() => window.eval('throw new RangeError("of the window")'));
    const caught = failed.result.catch((error) => error);
    const reason = aborted.result.catch((error) => error);
    await new Promise((resolve) => setTimeout(resolve, 10));
    button.click();
    assert.equal((await clicked.result).type, 'click');
    controller.abort(window.eval('new TypeError("why")'));
    assert.equal((await reason).reason, 'why');
    const error = await caught;
    assert.deepEqual([error.name, error instanceof Error], ['RangeError', false]);
    region.cancel(window.eval('new Error("bye")'));
    assert.equal(region.reason().reason, 'bye');
    await region.done.catch(() => {});
    window.dispatchEvent(new window.Event('pagehide'));
    await rt.root.done;
    assert.equal(rt.flushed, true);
});
