import { EbbError } from './errors.js';
import { checkTarget } from './options.js';

/** What a runtime can't do without. `fetch` and `clearTimeout` are for those who use them. */
const NEEDED = ['queueMicrotask', 'MessageChannel', 'setTimeout', 'now'];

/**
 * What a global object has of what a Runtime may use: `new Runtime(hostOf(globalThis))`. The package itself
 * never looks at a global; who calls this hands it over.
 * @param {typeof globalThis} global
 */
export function hostOf(global) {
    if (global === null || (typeof global !== 'object' && typeof global !== 'function')) {
        throw new TypeError(`hostOf: expected a global object, as globalThis; found ${global}`);
    }
    const bound = (name) => (typeof global[name] === 'function' ? global[name].bind(global) : undefined);
    return {
        queueMicrotask: bound('queueMicrotask'),
        setTimeout: bound('setTimeout'),
        clearTimeout: bound('clearTimeout'),
        fetch: bound('fetch'),
        MessageChannel: global.MessageChannel,
        now: global.performance && (() => global.performance.now()),
    };
}

/**
 * The host's capabilities, or an error that names what is missing or is no function. Taken once, and called
 * without a `this`: as a method of another object the platform's own would refuse.
 */
export function checkHost(host) {
    if (host === null || typeof host !== 'object') {
        throw new TypeError(`new Runtime(host): expected an object with ${NEEDED.join(', ')}; found ${host}`);
    }
    for (const name of NEEDED) capability(host, name);
    const { queueMicrotask, setTimeout, clearTimeout, fetch, now, MessageChannel, page } = host;
    if (page !== undefined) checkTarget(page, 'pagehide', 'page');
    return {
        queueMicrotask: (fn) => queueMicrotask(fn),
        setTimeout: (fn, ms) => setTimeout(fn, ms),
        clearTimeout: typeof clearTimeout === 'function' ? (id) => clearTimeout(id) : undefined,
        fetch: typeof fetch === 'function' ? (input, init) => fetch(input, init) : fetch,
        now: () => now(),
        MessageChannel,
        page,
    };
}

export function capability(host, name) {
    if (typeof host[name] === 'function') return host[name];
    throw new EbbError('EBB_ERR_CAPABILITY',
        `this needs ${name}, which was not passed to the Runtime (found ${typeof host[name]})`);
}
