export { Runtime } from './src/runtime.js';
export { Region } from './src/region.js';
export { Task, Cx, Obligation } from './src/task.js';
export { Cancelled, EbbError } from './src/errors.js';
export { TraceReader } from './src/trace.js';
export { hostOf } from './src/host.js';
