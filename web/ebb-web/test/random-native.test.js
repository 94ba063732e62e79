// only: node
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';

import { TraceReader } from '../index.js';
import { SEVERITIES } from './contract.js';
import { runProgram } from './programs.js';
import { virtual } from './virtual-host.js';

const { EBB } = process.env;
const skip = EBB ? false : 'EBB does not name the native command';
const PROGRAMS = 60;

function directory(t) {
    const dir = mkdtempSync(join(tmpdir(), 'ebb-web-'));
    t.after(() => rmSync(dir, { recursive: true }));
    return (name) => join(dir, name);
}

/** Runs the native command; what it says is the failure. */
function ebb(seed, ...args) {
    try {
        return execFileSync(EBB, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    } catch (error) {
        const said = `${error.stdout}${error.stderr}`;
        throw new Error(`seed ${seed}: ebb ${args.join(' ')}: exit ${error.status}\n${said}`);
    }
}

test('the native command verifies the trace of a random program, strictly', { skip }, async (t) => {
    const file = directory(t);
    for (let seed = 1001; seed <= 1000 + PROGRAMS; seed++) {
        const { rt } = await runProgram(seed);
        writeFileSync(file('trace'), rt.takeTrace({ flush: true }));
        ebb(seed, 'trace', 'verify', '--strict', '--quiescent', file('trace'));
    }
});

test('the native kernel replays the journal of a random program to the same bytes', { skip }, async (t) => {
    const file = directory(t);
    for (let seed = 2001; seed <= 2000 + PROGRAMS; seed++) {
        const { rt } = await runProgram(seed, { journal: 1 << 20 });
        const trace = rt.takeTrace({ flush: true });
        writeFileSync(file('trace'), trace);
        writeFileSync(file('journal'), rt.takeJournal({ flush: true }));
        const [journal, replayed] = [file('journal'), file('replayed')];
        ebb(seed, 'journal', 'replay', journal, '--trace', replayed, '--compare', file('trace'));
        assert.ok(readFileSync(replayed).equals(trace), `seed ${seed}: other bytes`);
    }
});

test('a recording that was flushed midway replays event for event', { skip }, async (t) => {
    const file = directory(t);
    const { host, rt } = virtual(t, { journal: 1 << 20 });
    const pieces = { trace: [], journal: [] };
    const take = () => {
        pieces.trace.push(rt.takeTrace({ flush: true }));
        pieces.journal.push(rt.takeJournal({ flush: true }));
    };
    const region = rt.region({ timeout: 3000 });
    for (let i = 0; i < 5; i++) {
        region.spawn((cx) => cx.sleep(1000 * i));
        await host.pass(100);
        take();
    }
    region.cancel('enough');
    await host.until(region.done);
    await host.until(rt.close());
    take();
    for (const [name, bytes] of Object.entries(pieces)) writeFileSync(file(name), Buffer.concat(bytes));
    ebb('flushed', 'journal', 'replay', file('journal'), '--trace', file('replayed'), '--compare', file('trace'));
    assert.ok(!readFileSync(file('replayed')).equals(readFileSync(file('trace'))), 'the blocks are other ones');
});

test('the events that JavaScript reads are those that the native command reads', { skip }, async (t) => {
    const file = directory(t);
    for (let seed = 3001; seed <= 3010; seed++) {
        const { rt } = await runProgram(seed);
        const trace = rt.takeTrace({ flush: true });
        writeFileSync(file('trace'), trace);
        const lines = ebb(seed, 'trace', 'export', '--format', 'jsonl', file('trace')).trim().split('\n');
        const ours = new TraceReader(rt).push(trace);
        const native = lines.map((line) => JSON.parse(line))
            .filter(({ type }) => !['time', 'turn'].includes(type))
            .map(({ runtime, status, ...event }) => event);
        assert.deepEqual(ours.map(asExported), native, `seed ${seed}`);
    }
});

/** An event of ours as the native command writes it. */
function asExported(event) {
    const hex = (id) => `0x${id.toString(16).padStart(16, '0')}`;
    const exported = {
        type: event.type, decision_seq: Number(event.decisionSeq), host_turn_id: Number(event.hostTurnId),
        microtask_batch_id: Number(event.microtaskBatchId), time_ns: `${event.time}`,
        task_id: hex(event.taskId), region_id: hex(event.regionId), cancel_phase: event.cancelPhase || null,
        cancel_kind: event.cancelKind || null, cancel_epoch: event.cancelEpoch,
        severity: SEVERITIES.indexOf(event.severity || 'none'), value: event.value, other: hex(event.other),
    };
    for (const key of ['name', 'site', 'text']) if (event[key] !== '') exported[key] = event[key];
    return exported;
}

test('what somebody\'s code does as a task or a region ends replays as well', { skip }, async (t) => {
    const file = directory(t);
    const { host, rt } = virtual(t, { journal: 1 << 20 });
    const other = rt.region();
    const meddling = () => {
        const { signal } = new AbortController();
        signal.removeEventListener = () => {
            rt.region().spawn((cx) => cx.sleep(1));
            other.cancel('somebody has ended');
            rt.dump();
        };
        return signal;
    };
    const region = rt.region({ signal: meddling() });
    const [task] = [1, 2].map(() => region.spawn((cx) => cx.sleep(5), { signal: meddling() }));
    task.result.catch(() => rt.region().close());
    await host.settle();
    region.cancel('stop');
    await host.finish();
    await host.until(rt.close());
    const trace = rt.takeTrace({ flush: true });
    writeFileSync(file('trace'), trace);
    writeFileSync(file('journal'), rt.takeJournal({ flush: true }));
    ebb(0, 'journal', 'replay', file('journal'), '--compare', file('trace'));
});
