#!/usr/bin/env node
/**
 * What the kernel costs in a browser's engine: its size, and polls and cancels as wasm beside the same C run
 * natively; then what a user of the package pays, beside plain promises.
 *
 * usage: run.mjs [--dir build/wasm/web] [--native build/release/bench/web-native] [--rounds N] [OUT.jsonl]
 *
 * Ours and what it is compared with take turns, round by round, and the median counts. Rows are written as
 * ebb-bench writes them; those of the same name in the file are replaced.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';

const WORKS = [
    { name: 'web.poll', work: 0, n: 4000000, target: 3 },
    { name: 'web.spawn_end', work: 1, n: 1000000 },
    { name: 'web.cancel', work: 2, n: 200000 },
];
const SIZE_TARGET = 40 * 1024;
const TASKS = 20000;

function options(argv) {
    const o = { dir: 'build/wasm/web', native: 'build/release/bench/web-native', rounds: 7, out: undefined };
    for (let i = 0; i < argv.length; i++) {
        if (['--dir', '--native', '--rounds'].includes(argv[i])) o[argv[i].slice(2)] = argv[++i];
        else o.out = argv[i];
    }
    return o;
}

function median(values) {
    return [...values].sort((a, b) => a - b)[values.length >> 1];
}

/** Both in turn, so that what else the machine does meets both. */
async function inTurn(rounds, ours, other) {
    const times = [[], []];
    await ours();
    await other();
    for (let i = 0; i < rounds; i++) {
        times[0].push(await ours());
        times[1].push(await other());
    }
    return times.map(median);
}

function wasmWork(instance, { work, n }) {
    if (instance.exports.bench_prepare(work, n) !== 0) throw new Error('no memory for the bench');
    const begun = performance.now();
    const done = instance.exports.bench_run();
    return (performance.now() - begun) * 1e6 / Number(done);
}

async function kernelRows(o, rows) {
    const module = new WebAssembly.Module(readFileSync(path.join(o.dir, 'parity/ebb-lab.wasm')));
    const stubs = Object.fromEntries(WebAssembly.Module.imports(module).map(({ name }) => [name, () => 0]));
    const instance = new WebAssembly.Instance(module, { ebb: stubs });
    for (const row of WORKS) {
        const native = () => Number(execFileSync(o.native, [String(row.work), String(row.n)], { encoding: 'utf8' }));
        const [ours, floor] = await inTurn(o.rounds, () => wasmWork(instance, row), native);
        rows.push({ name: row.name, unit: 'ns', ours, peer: 'native', floor, ratioTarget: row.target });
    }
}

/* ---- the package beside plain promises ----------------------------------------------------------------------- */

async function timed(n, fn) {
    const begun = performance.now();
    await fn();
    return (performance.now() - begun) * 1e6 / n;
}

/** Async functions that each take a turn of the microtask queue, and end. */
async function plainTasks() {
    await Promise.all(Array.from({ length: TASKS }, async () => { await null; }));
}

async function ourTasks(rt) {
    const region = rt.region();
    for (let i = 0; i < TASKS; i++) region.spawn(async () => { await null; });
    await region.join();
}

/** Async functions that wait, each with an AbortController of its own, and are aborted. */
function plainCancel() {
    const controllers = [];
    const all = Array.from({ length: TASKS }, async () => {
        const controller = new AbortController();
        controllers.push(controller);
        try {
            await new Promise((_, reject) => {
                controller.signal.addEventListener('abort', () => reject(controller.signal.reason), { once: true });
            });
        } catch {
            /* as they should */
        }
    });
    return timed(TASKS, async () => {
        for (const controller of controllers) controller.abort();
        await Promise.all(all);
    });
}

async function ourCancel(rt) {
    const region = rt.region();
    let waiting = 0;
    for (let i = 0; i < TASKS; i++) region.spawn(async (cx) => { waiting++; await cx.sleep(1e9); });
    while (waiting < TASKS) await new Promise((resolve) => { setTimeout(resolve, 1); });
    return timed(TASKS, async () => {
        region.cancel('all of you');
        await region.done;
    });
}

async function packageRows(o, rows) {
    const { Runtime, hostOf } = await import(pathToFileURL(path.resolve(o.dir, 'ebb-web/index.js')));
    const rt = new Runtime(hostOf(globalThis));
    const tasks = await inTurn(o.rounds, () => timed(TASKS, () => ourTasks(rt)), () => timed(TASKS, plainTasks));
    rows.push({ name: 'web.js_task', unit: 'ns', ours: tasks[0], peer: 'promises', floor: tasks[1] });
    const cancel = await inTurn(o.rounds, () => ourCancel(rt), plainCancel);
    rows.push({ name: 'web.js_cancel', unit: 'ns', ours: cancel[0], peer: 'abort', floor: cancel[1] });
    await rt.close();
}

function sizeRow(o) {
    const wasm = readFileSync(path.join(o.dir, 'ebb-web/ebb.wasm'));
    const best = { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 22 } };
    return { name: 'web.size', unit: 'bytes', ours: brotliCompressSync(wasm, best).length, target: SIZE_TARGET };
}

/* ---- telling --------------------------------------------------------------------------------------------- */

function finished(row) {
    const done = { name: row.name, unit: row.unit, ours: round(row.ours) };
    if (row.floor !== undefined) Object.assign(done, { floor: round(row.floor), ratio: round(row.ours / row.floor) });
    if (row.target !== undefined) Object.assign(done, { target: row.target, held: row.ours <= row.target });
    if (row.ratioTarget !== undefined) Object.assign(done, { target: row.ratioTarget, held: done.ratio <= row.ratioTarget });
    return done;
}

function round(x) {
    return Math.round(x * 100) / 100;
}

function print(row, peer) {
    const beside = row.floor === undefined ? '' : `  ${peer} ${row.floor}, ${row.ratio} x`;
    const target = row.target === undefined ? '' : `  target ${row.target}${row.ratio === undefined ? '' : ' x'}: ` +
        (row.held ? 'held' : 'MISSED');
    console.log(`${row.name.padEnd(24)} ${String(row.ours).padStart(10)} ${row.unit}${beside}${target}`);
}

function write(file, rows) {
    const names = new Set(rows.map((row) => row.name));
    const before = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
    const kept = before.filter((line) => !names.has(JSON.parse(line).name));
    writeFileSync(file, [...kept, ...rows.map((row) => JSON.stringify(row))].join('\n') + '\n');
}

const o = options(process.argv.slice(2));
const rows = [sizeRow(o)];
await kernelRows(o, rows);
await packageRows(o, rows);
rows.forEach((row) => print(finished(row), row.peer));
if (o.out !== undefined) write(o.out, rows.map(finished));
