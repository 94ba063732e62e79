/*
 * What page.html offers to who drives it: globalThis.parity runs fixtures and scenarios in this page.
 * Arguments and answers are what JSON can carry.
 */
import { hostOf } from '../ebb-web/index.js';
import { runScenario } from './adapter.js';
import { runFixture } from './fixture.js';

const modules = new Map();

/** The module of that name beside this file, compiled once. */
function moduleOf(name) {
    const compile = () => WebAssembly.compileStreaming(fetch(new URL(name, import.meta.url)));
    if (!modules.has(name)) modules.set(name, compile());
    return modules.get(name);
}

globalThis.parity = {
    async fixture(name, fixture, options) {
        return runFixture(await moduleOf(name), fixture, options);
    },
    async scenario(name, id, options) {
        const module = name === null ? undefined : await moduleOf(name);
        return await runScenario(id, hostOf(globalThis), { ...options, module });
    },
};
