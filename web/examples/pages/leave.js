/* A thousand tasks, and a record in localStorage of what had ended when the page was left. */
import { Runtime, hostOf } from 'ebb-web';

const TASKS = 1000;
const counts = { cleanups: 0, finalizers: 0, leases: 0 };
const rt = new Runtime({ ...hostOf(globalThis), page: window });
const page = rt.region({ name: 'page' });

/** Every tenth waits for something that is not the runtime's, and can't end. */
function body(stuck) {
    return async (cx) => {
        cx.defer(() => void counts.finalizers++);
        const lease = cx.reserve('lease', () => void counts.leases++);
        cx.defer(() => lease.abort());
        try {
            await (stuck ? new Promise(() => {}) : cx.sleep(1e6));
        } finally {
            counts.cleanups++;
        }
    };
}

for (let i = 0; i < TASKS; i++) {
    const stuck = i % 10 === 0;
    page.spawn(body(stuck), { name: stuck ? `stuck ${i}` : `sleeper ${i}` });
}

rt.root.done.then(({ status, forced }) => {
    const abandoned = forced.filter((cut) => cut.abandoned).map(({ site }) => site);
    localStorage.left = JSON.stringify({ status, counts, abandoned, tasks: rt.stats().tasks });
});

addEventListener('pageshow', ({ persisted }) => {
    globalThis.shown = { persisted };
    if (!persisted) return;
    try {
        rt.region();
    } catch ({ code, message }) {
        globalThis.shown = { persisted, flushed: rt.flushed, code, message };
    }
});

rt.root.spawn(async (cx) => {
    await cx.sleep(0);
    globalThis.ready = rt.stats().tasks;
});
