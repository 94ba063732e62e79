/*
 * Plants mistakes in a copy of the package, one at a time, and looks whether parity and the tests find them:
 *
 *     node web/mutate/run.js --ebb build/release/ebb --dir build/wasm/web --fixtures fixtures/cancel --random 20
 *
 * One line a mistake; exits with 1 if one was not found that is not in allowed.js.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { ALLOWED } from './allowed.js';
import { Bench } from './bench.js';
import { judge, limits } from './judge.js';
import { NAMED } from './named.js';
import { candidates, ranked } from './random.js';

const USAGE = `usage: node run.js --ebb EBB --dir DIR --fixtures DIR
--random N    so many mistakes that nobody chose, half of them in the kernel; else none
--seed S      which ones; else 1
--seconds S   begins no mistake after so long: what is left is counted; else it takes its time
--only TEXT   named mistakes whose name or file has this text, and no others`;

/** What decides, in the kernel: not recording, dumping, checking. */
const KERNEL = ['kernel/admit.c', 'kernel/checkpoint.c', 'kernel/cascade.c', 'kernel/lane.c', 'kernel/reason.c', 'kernel/request.c',
    'kernel/task.c', 'kernel/witness.c', 'sched/pump.c', 'sched/timer.c'];

function options() {
    const text = { type: 'string' };
    const { values } = parseArgs({ options: { ebb: text, dir: text, fixtures: text, random: text, seed: text, seconds: text, only: text } });
    for (const name of ['ebb', 'dir', 'fixtures']) {
        if (values[name] === undefined) throw new Error(`--${name} is missing\n${USAGE}`);
    }
    const { random = 0, seed = '1', seconds = Infinity } = values;
    return { ...values, random: Number(random), seed, seconds: Number(seconds) };
}

function sources(files) {
    return files.map((file) => ({ file, text: readFileSync(file, 'utf8') }));
}

/** In turn one of the package and one of the kernel. */
function random({ random: n, seed }) {
    const adapter = readdirSync('web/ebb-web/src').sort().map((name) => `web/ebb-web/src/${name}`);
    const [first, second] = [adapter, KERNEL].map((files) => ranked(candidates(sources(files)), seed));
    return Array.from({ length: n }, (_, i) => (i % 2 === 0 ? first : second)[Math.floor(i / 2)]);
}

function tellOf({ name, file, line, was, is }) {
    return line === undefined ? `${file}: ${name}` : `${file}:${line}: ${name}: ${was}  ->  ${is}`;
}

function allowedFor({ file, was, is }) {
    return ALLOWED.find((each) => each.file === file && each.was === was && each.is === is);
}

class Tally {
    counts = { found: 0, 'not found': 0, allowed: 0, 'no difference': 0, 'not run': 0 };

    take(mutant, what, by) {
        this.counts[what] += 1;
        console.log(`${what === 'not found' ? 'not ok' : 'ok'} ${tellOf(mutant)} (${by})`);
    }

    end() {
        console.log(Object.entries(this.counts).map(([what, n]) => `${n} ${what}`).join(', '));
        return this.counts['not found'] === 0 ? 0 : 1;
    }
}

async function one(bench, mutant, o, tally) {
    const allowed = allowedFor(mutant);
    if (allowed !== undefined) return tally.take(mutant, 'allowed', allowed.why);
    try {
        const nothing = await bench.plant(mutant);
        if (nothing !== undefined) return tally.take(mutant, 'no difference', nothing);
        const by = await judge(bench.dir, o, o.limitsMs);
        return tally.take(mutant, by === undefined ? 'not found' : 'found', by ?? 'nobody noticed');
    } finally {
        bench.restore(mutant);
    }
}

async function worker(queue, o, tally, end) {
    const bench = new Bench(o.dir);
    try {
        while (queue.length > 0 && performance.now() < end) await one(bench, queue.shift(), o, tally);
    } finally {
        bench.close();
    }
}

async function main() {
    const o = options();
    const end = performance.now() + o.seconds * 1000;
    const named = NAMED.filter(({ name, file }) => o.only === undefined || `${name} ${file}`.includes(o.only));
    const queue = [...named, ...(o.only === undefined ? random(o) : [])];
    const tally = new Tally();
    const bench = new Bench(o.dir);
    o.limitsMs = await limits(bench.dir, o).finally(() => bench.close());
    await Promise.all([1, 2].map(() => worker(queue, o, tally, end)));
    tally.counts['not run'] = queue.length;
    return tally.end();
}

try {
    process.exitCode = await main();
} catch (error) {
    console.error(error.message);
    process.exitCode = 2;
}
