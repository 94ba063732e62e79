/** All of the package but the text of its module: `new Runtime(host, { module })` needs one. */
export { Runtime } from './src/runtime.js';
export { Region } from './src/region.js';
export { Task } from './src/task.js';
export { Cx } from './src/cx.js';
export { Obligation } from './src/obligation.js';
export { Cancelled, EbbError } from './src/errors.js';
export { TraceReader } from './src/trace.js';
export { hostOf } from './src/host.js';
