import { Host, Runtime as Whole, RuntimeOptions } from './index.js';

export * from './index.js';

/**
 * The package without the text of its module, for bundles: 148 KB of JavaScript less. The module is passed in:
 * `new Runtime(host, { module: await WebAssembly.compileStreaming(fetch(url)) })`, with the url of `ebb-web/ebb.wasm`.
 */
export class Runtime extends Whole {
    constructor(host: Host, options: RuntimeOptions & { module: WebAssembly.Module });
}
