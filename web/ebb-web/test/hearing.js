import { elapse } from './real-host.js';

/**
 * What nobody catches: unhandled rejections, and errors that listeners throw. Both hosts of these tests would
 * fail the test that runs for one; while `hears` does, they are kept instead. The returned function waits for
 * so many of them, and a little longer: a page tells of a rejection when it finds the time.
 * @returns {(n: number) => Promise<{ error: unknown, kind: 'rejection' | 'error' }[]>}
 */
export function hears(t) {
    const heard = [];
    t.after(globalThis.process?.versions?.node ? inNode(heard) : inPage(heard));
    return async (n) => {
        for (let waited = 0; heard.length < n && waited < 1000; waited += 5) await elapse(5);
        await elapse(5);
        return heard;
    };
}

function inNode(heard) {
    const names = ['unhandledRejection', 'uncaughtException'];
    const others = names.map((name) => process.listeners(name));
    const ours = [
        (error) => heard.push({ error, kind: 'rejection' }),
        (error) => heard.push({ error, kind: 'error' }),
    ];
    names.forEach((name, i) => process.removeAllListeners(name).on(name, ours[i]));
    return () => names.forEach((name, i) => {
        process.removeListener(name, ours[i]);
        others[i].forEach((listener) => process.on(name, listener));
    });
}

/* At the target itself a capturing listener comes before the page's own. */
function inPage(heard) {
    const ours = (event) => {
        event.stopImmediatePropagation();
        event.preventDefault();
        heard.push(event.type === 'error' ? { error: event.error, kind: 'error' }
            : { error: event.reason, kind: 'rejection' });
    };
    const names = ['unhandledrejection', 'error'];
    names.forEach((name) => globalThis.addEventListener(name, ours, { capture: true }));
    return () => names.forEach((name) => globalThis.removeEventListener(name, ours, { capture: true }));
}
