/**
 * What the types refuse: each line below an expected error is one; a line that is none is an error itself.
 */
import { Cancelled, Cx, EbbError, hostOf, Obligation, Region, Runtime, Task, TraceReader } from 'ebb-web';
import type { CancelKind, Phase } from 'ebb-web';
import { Runtime as CoreRuntime } from 'ebb-web/core';

const rt = new Runtime(hostOf(globalThis));
const region = rt.region();
const task = region.spawn(async () => 5);

// @ts-expect-error: a runtime takes nothing from the air
new Runtime();
// @ts-expect-error: nor from half a host
new Runtime({ queueMicrotask, setTimeout, now: () => 0 });
// @ts-expect-error: ids are BigInts
rt.wake(5);
// @ts-expect-error
rt.info(Number(task.id));
// @ts-expect-error: there is no such kind
region.cancel({ kind: 'user' });
// @ts-expect-error: what the kernel tells children is not for callers
task.cancel({ kind: 'PARENT' });
// @ts-expect-error: a budget of its own is for regions
task.cancel({ within: 10 });
// @ts-expect-error: milliseconds are a number
region.spawn(() => 1, { timeout: '10' });
// @ts-expect-error: there is no such option
region.spawn(() => 1, { retries: 3 });
// @ts-expect-error: no function
region.spawn('work');
// @ts-expect-error: functions, not promises
region.race([Promise.resolve(1)]);
// @ts-expect-error: its result is a number
const text: Promise<string> = task.result;
// @ts-expect-error: tasks are spawned
new Task();
// @ts-expect-error: regions are opened
new Region();
// @ts-expect-error
new Cx();
// @ts-expect-error: obligations are reserved
new Obligation();
// @ts-expect-error: one is cancelled by somebody else
new Cancelled();
// @ts-expect-error
new EbbError();
// @ts-expect-error: a reader needs names
new TraceReader();
// @ts-expect-error: there is no such obligation
task.cx.reserve('lock');
// @ts-expect-error: a deadline is a BigInt
const deadline: number = task.witness().budget.deadline;
// @ts-expect-error: not a phase
const phase: Phase = 'Cancelled';
// @ts-expect-error: nothing to be set
task.id = 5n;
// @ts-expect-error
region.done = Promise.resolve();
// @ts-expect-error: what is the runtime's own is not declared
rt.schedule();
// @ts-expect-error
region.over(0, {});
// @ts-expect-error: a kind is one of some
const kind: CancelKind = 'NONE';

console.log(text, deadline, phase, kind);

// @ts-expect-error: a click has no key
task.cx.once(window, 'click').then((event) => event.key);
// @ts-expect-error: what a race gives is what one of its functions does
const won: Promise<string> = region.race([() => 'text', () => 5]);
console.log(won);
// @ts-expect-error: the core has no module of its own
new CoreRuntime(hostOf(globalThis));
// @ts-expect-error
new CoreRuntime(hostOf(globalThis), { trace: 1 });
