/* With a module of the page's own: the bundle has no copy of it, the file stands beside the bundle. */
import { hostOf, Runtime } from 'ebb-web/core';
import { show } from './show.js';

const file = new URL('ebb-web/ebb.wasm', import.meta.url);
WebAssembly.compileStreaming(fetch(file)).then((module) => show(new Runtime(hostOf(globalThis), { module })));
