/** Calls `fn(cx, event)` when a target has been quiet for `ms` after an event; a new event cancels the call. */
export function debounce(region, target, type, ms, fn) {
    return region.spawn(async (cx) => {
        const calls = cx.region({ name: 'calls' });
        let last;
        cx.on(target, type, (event) => {
            last?.cancel('a newer event');
            last = calls.spawn(async (call) => {
                await call.sleep(ms);
                await fn(call, event);
            });
        });
        await cx.wait(calls.done); // rejects with the first failure of a call
    });
}
