// The kernel's benchmark rows, done the way Node does them: promises and AbortSignal.
// Protocol and caveats: bench/peers/README.md. Needs --expose-gc.

import { readFileSync } from 'node:fs';

const MILLION = 1_000_000;

class Skip {
  constructor(why) { this.why = why; }
}

// Of the process, so that the collector's and the compiler's threads are counted.
const cpuNanoseconds = () => {
  const used = process.cpuUsage();
  return (used.user + used.system) * 1000;
};

const residentBytes = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'latin1'))[1]) * 1024;

async function spawnEndSeq() {
  const task = async () => {};
  const start = cpuNanoseconds();
  for (let i = 0; i < MILLION; i++) await task();
  return (cpuNanoseconds() - start) / MILLION;
}

// The one await keeps each alive until all have been started: without it an async
// function has ended before its caller goes on.
async function spawnEndMillion() {
  const task = async () => { await null; };
  const tasks = new Array(MILLION);
  const start = cpuNanoseconds();
  for (let i = 0; i < MILLION; i++) tasks[i] = task();
  await Promise.all(tasks);
  return (cpuNanoseconds() - start) / MILLION;
}

// With a reason of its own: abort() alone makes an exception with a stack trace each time.
async function regionOpenClose() {
  const reason = 'closed';
  const start = cpuNanoseconds();
  for (let i = 0; i < MILLION; i++) new AbortController().abort(reason);
  return (cpuNanoseconds() - start) / MILLION;
}

const aborted = (signal) => new Promise((_, reject) => {
  signal.addEventListener('abort', () => reject(signal.reason), { once: true });
});

const parked = async (signal) => {
  try {
    await aborted(signal);
  } catch {
    // The abort is what it waited for.
  }
};

// A signal derived for each task, because addEventListener walks the listeners there are:
// a million of them on one signal take hours.
function park(scope) {
  const tasks = new Array(MILLION);
  for (let i = 0; i < MILLION; i++) tasks[i] = parked(AbortSignal.any([scope.signal]));
  return tasks;
}

async function taskBytes() {
  const scope = new AbortController();
  const before = residentBytes();
  const tasks = park(scope);
  globalThis.gc();
  const bytes = (residentBytes() - before) / MILLION;
  scope.abort();
  await Promise.all(tasks);
  return bytes;
}

async function cancelFan() {
  const scope = new AbortController();
  const tasks = park(scope);
  globalThis.gc();
  const start = cpuNanoseconds();
  scope.abort();
  await Promise.all(tasks);
  return (cpuNanoseconds() - start) / MILLION;
}

// Not by AbortSignal.any: a level that can also be aborted alone then remembers every
// level above it, which is quadratic.
async function cancelChain() {
  // A listener that throws, as on a full stack, does so out of dispatchEvent's reach.
  process.on('uncaughtException', () => {});
  const levels = [new AbortController()];
  for (let i = 0; i < MILLION; i++) {
    const child = new AbortController();
    levels[i].signal.addEventListener('abort', () => child.abort(), { once: true });
    levels.push(child);
  }
  const start = cpuNanoseconds();
  levels[0].abort();
  const ns = (cpuNanoseconds() - start) / MILLION;
  const reached = levels.findIndex((level) => !level.signal.aborted);
  if (reached >= 0) return new Skip(`abort recurses and its stack was full after ${reached} levels`);
  return ns;
}

// Asked of a plain variable, the compiler asks once for the whole loop; asked of several
// signals it is 20 times as slow, because each of them has a shape of its own.
async function cancelledCheck() {
  const checks = 50 * MILLION;
  const { signal } = new AbortController();
  const signals = [signal, signal];
  let seen = 0;
  const start = cpuNanoseconds();
  for (let i = 0; i < checks; i++) if (signals[i & 1].aborted) seen++;
  const ns = (cpuNanoseconds() - start) / checks;
  if (seen !== 0) throw new Error(`${seen} signals were aborted by nobody`);
  return ns;
}

// A channel of capacity 1 for one reader and one writer who take turns.
class Slot {
  constructor() { this.empty(); }
  empty() { this.filled = new Promise((resolve) => { this.put = resolve; }); }
  async take() {
    const value = await this.filled;
    this.empty();
    return value;
  }
}

async function channelMessage() {
  const ping = new Slot();
  const pong = new Slot();
  const echo = (async () => {
    for (let i = 0; i < MILLION; i++) {
      const value = await ping.take();
      pong.put(value + 1);
    }
  })();
  const start = cpuNanoseconds();
  for (let i = 0; i < MILLION; i++) {
    ping.put(i);
    await pong.take();
  }
  const ns = (cpuNanoseconds() - start) / (2 * MILLION);
  await echo;
  return ns;
}

async function timerArmCancel() {
  const due = Array.from({ length: MILLION }, () => 100_000 + Math.floor(Math.random() * 1_000_000));
  const timers = new Array(MILLION);
  const never = () => { throw new Error('a timer fired that was to be cancelled'); };
  const start = cpuNanoseconds();
  for (let i = 0; i < MILLION; i++) timers[i] = setTimeout(never, due[i]);
  for (let i = 0; i < MILLION; i++) clearTimeout(timers[i]);
  return (cpuNanoseconds() - start) / MILLION;
}

async function thenChain() {
  const start = cpuNanoseconds();
  let resolve;
  let last = new Promise((r) => { resolve = r; });
  for (let i = 0; i < MILLION; i++) last = last.then((x) => x + 1);
  resolve(0);
  if (await last !== MILLION) throw new Error('a link is missing');
  return (cpuNanoseconds() - start) / MILLION;
}

const rows = {
  'kernel.spawn_end_seq': ['ns', spawnEndSeq],
  'kernel.spawn_end_1m': ['ns', spawnEndMillion],
  'kernel.region_open_close': ['ns', regionOpenClose],
  'kernel.task_bytes': ['bytes', taskBytes],
  'kernel.cancel_fan_1m': ['ns', cancelFan],
  'kernel.cancel_chain_1m': ['ns', cancelChain],
  'kernel.cancelled_check': ['ns', cancelledCheck],
  'kernel.channel_msg': ['ns', channelMessage],
  'kernel.timer_arm_cancel_1m': ['ns', timerArmCancel],
  'future.then_chain_1m': ['ns', thenChain],
};

const [name, rounds] = process.argv.slice(2);
const [unit, round] = rows[name] ?? ['', async () => new Skip('no such row in this peer')];
for (let i = 0; i < Number(rounds); i++) {
  globalThis.gc();
  const value = await round();
  if (value instanceof Skip) {
    console.log(`skip ${name} ${value.why}`);
    break;
  }
  console.log(`row ${name} ${unit} ${value.toFixed(3)}`);
}
