/* Runs in Vitest and in Jest, in both with jsdom: `test` and `expect` are theirs. */
import { MessageChannel } from 'node:worker_threads'; // jsdom has none

import { Runtime, hostOf } from 'ebb-web';
import { debounce } from './debounce.js';

test('only the last of some quick events is handled, and nothing is left', async () => {
    const rt = new Runtime({ ...hostOf(globalThis), MessageChannel });
    const page = rt.region({ name: 'page' });
    document.body.innerHTML = '<input>';
    const input = document.querySelector('input');
    const handled = new Promise((resolve) => {
        debounce(page, input, 'input', 5, async (cx, event) => resolve(event.target.value));
    });
    await new Promise((resolve) => setTimeout(resolve));
    for (const value of ['e', 'eb', 'ebb']) {
        input.value = value;
        input.dispatchEvent(new Event('input'));
    }
    expect(await handled).toBe('ebb');
    page.cancel('the test is over');
    expect((await page.done).status).toBe('cancelled');
    await rt.close();
    expect(rt.stats().tasks).toBe(0);
});

test('a failure of a call is the failure of the region, whatever realm its error is of', async () => {
    const rt = new Runtime({ ...hostOf(globalThis), MessageChannel });
    const page = rt.region();
    debounce(page, document, 'click', 0, async () => document.querySelector('!'));
    await new Promise((resolve) => setTimeout(resolve));
    document.dispatchEvent(new Event('click'));
    await expect(page.done).rejects.toMatchObject({ name: 'SyntaxError' });
    await rt.close();
});

test('an abort of jsdom\'s own AbortController cancels, with its reason', async () => {
    const rt = new Runtime({ ...hostOf(globalThis), MessageChannel });
    const controller = new AbortController();
    const task = rt.region().spawn((cx) => cx.sleep(60_000), { signal: controller.signal });
    await new Promise((resolve) => setTimeout(resolve));
    controller.abort(new DOMException('ünmounted ☂', 'AbortError'));
    await expect(task.result).rejects.toMatchObject({ kind: 'USER', reason: 'ünmounted ☂' });
    await rt.close();
});
