import { Runtime, hostOf } from '../index.js';
import { end } from './virtual-host.js';

/** A runtime on what this page or process has, for one test. It has to end, and in good order. */
export function real(t, options = {}, host = hostOf(globalThis)) {
    const rt = new Runtime(host, { trace: 1 << 20, ...options });
    t.after(() => end(rt));
    return rt;
}

/** So many real milliseconds. */
export function elapse(ms) {
    return new Promise((resolve) => {
        setTimeout(resolve, ms);
    });
}
