import { builtin } from './module.js';
import { Runtime as Core } from './runtime.js';

/** A Runtime that brings its own module, so that nothing has to be fetched. */
export class Runtime extends Core {
    constructor(host, options = {}) {
        super(host, { ...options, module: options.module ?? builtin() });
    }
}
