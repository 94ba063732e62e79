import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, describe } from 'node:test';
import { fileURLToPath } from 'node:url';

import { quoted } from '../artefacts.js';
import { Usage, optionsOf } from '../options.js';
import { EBB, FIXTURES, MUTANT, WEB, fixtureOf } from './built.js';

const RUN = fileURLToPath(new URL('../run.js', import.meta.url));
const dir = mkdtempSync(join(tmpdir(), 'ebb-parity-test-'));
after(() => rmSync(dir, { recursive: true }));

function command(file, args) {
    return new Promise((resolve) => {
        execFile(file, args, (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }));
    });
}

function run(...args) {
    return command(process.execPath, [RUN, ...args]);
}

const GOOD = ['--ebb', EBB, '--dir', WEB, '--fixtures', FIXTURES];

/** The good arguments with some of them replaced; undefined takes one out. */
function given(changes) {
    const pairs = [...GOOD.keys()].filter((i) => i % 2 === 0).map((i) => [GOOD[i], GOOD[i + 1]]);
    return Object.entries({ ...Object.fromEntries(pairs), ...changes }).flatMap(([name, value]) => (
        value === undefined ? [] : [name, value]));
}

function parity(...args) {
    return run(...GOOD, ...args);
}

/** The gates that each host fails: { 'chromium': 'fixture, parity' }. */
function failures(stdout, id) {
    const all = [...stdout.matchAll(/^not ok (\S+) (\S+): (.*)$/gm)].filter((found) => found[2] === id);
    return Object.fromEntries(all.map(([, host, , gates]) => [host, gates]));
}

/* ---- a broken rule fails its gate and leaves the five artefacts ---------------------------------------- */

const RUNS = ['native', 'node', 'chromium', 'node-adapter', 'chromium-adapter'];

/** What fails where a script runs, and where the package does. */
function everywhere(script, adapter) {
    return { node: script, chromium: script, 'node-adapter': adapter, 'chromium-adapter': adapter };
}

/** A rule for each gate, the fixture that finds it broken, and what fails there in each host. */
const BROKEN = [
    {
        gate: 'fixture',
        rule: 'fairness',
        plant: 15,
        id: 'cancel.scheduler.cancel_lane_routing_on_pending_wake',
        fails: { node: 'fixture', chromium: 'fixture' },
        parts: /line \d+ `[^`]+`, a rule: expected that it holds; node: oracle fairness at event/,
    },
    {
        gate: 'parity',
        rule: 'ack_only_unmasked',
        plant: 12,
        id: 'parity.masked_deferral',
        fails: everywhere('fixture, parity', 'parity'),
        parts: /line 6 `pump`, event 4: native: obligation_committed\(write\) \w+; node: cancel_acked/,
    },
    {
        gate: 'fields',
        rule: 'required_fields',
        plant: 1,
        id: 'parity.single_task_checkpoint',
        fails: everywhere('fixture, parity, fields', 'parity, fields'),
        parts: /line 8 `pump`, event \d+, cancel_acked\(.*: expected all eight fields; node: no cancel_kind/,
    },
    {
        gate: 'witness',
        rule: 'phase_monotone',
        plant: 7,
        id: 'cancel.task.witness_phase_monotone',
        fails: everywhere('fixture, parity, witness', 'parity, witness'),
        parts: /line 11 `cancel job [^`]*`, the witness of task worker: .* its phase went back from 4 to 3;/,
    },
    {
        gate: 'witness',
        rule: 'severity_monotone',
        plant: 8,
        id: 'cancel.task.reason_strengthen_monotone',
        fails: everywhere('fixture, parity, witness', 'parity, witness'),
        parts: /line 14 `cancel-task [^`]*`, the witness of task worker: .* its severity went back from 2 to 1/,
    },
    {
        gate: 'witness',
        rule: 'budget_monotone',
        plant: 9,
        id: 'cancel.task.budget_combine_monotone',
        fails: everywhere('fixture, witness', 'parity, witness'),
        parts: /line \d+ `cancel job [^`]*`, the witness of task worker: .*; node: its \w+ grew from \d+ to/,
    },
];

/** What is in a directory of artefacts, but for the traces. */
function read(path) {
    return Object.fromEntries(['fixture.json', 'ids.txt', 'divergence.txt', 'repro.sh']
        .map((name) => [name, readFileSync(join(path, name), 'utf8')]));
}

function show(path) {
    return execFileSync(EBB, ['trace', 'show', path], { encoding: 'utf8' });
}

/** The traces are those of the hosts: the native one keeps the rule that the others break. */
async function checkTraces(path, { rule }) {
    const traces = RUNS.map((run) => `${run}.trace`);
    assert.deepEqual(readdirSync(path).filter((name) => name.endsWith('.trace')).sort(), traces.sort());
    for (const name of traces) assert.match(show(join(path, name)), /region_closed/);
    const verify = (name) => command(EBB, ['trace', 'verify', '--strict', '--quiescent', join(path, name)]);
    const [good, bad] = [await verify('native.trace'), await verify('chromium.trace')];
    assert.equal(good.code, 0, good.stdout);
    assert.equal(bad.code, 1, bad.stdout);
    assert.ok(`${bad.stdout}${bad.stderr}`.includes(rule), bad.stdout);
}

function checkIds(text, hosts) {
    const lines = text.trim().split('\n');
    assert.deepEqual(lines.map((line) => line.split(':')[0]), hosts);
    for (const line of lines) assert.match(line, /region (\S+ )?\d+\.1\.1, .*task (\S+ )?\d+\.1\.1/);
}

async function runBroken({ gate, rule, plant, id, fails }) {
    const artefacts = join(dir, `${rule} it's`);
    const planted = ['--module', 'ebb-mutant.wasm', '--plant', String(plant)];
    const { code, stdout, stderr } = await parity(...planted, '--artefacts', artefacts, id);
    assert.equal(code, 1, stderr);
    assert.deepEqual(failures(stdout, id), fails);
    assert.match(stdout, new RegExp(`^ok native ${id}$`, 'm'));
    assert.match(stdout, new RegExp(`\n${5 - Object.keys(fails).length} passed, ${Object.keys(fails).length} failed\n$`));
    return { stdout, path: join(artefacts, `${gate}-${id}`) };
}

async function checkArtefacts(path, each) {
    const { gate, plant, id, parts } = each;
    const left = read(path);
    const hosts = ['native', 'node', 'chromium'];
    const about = { id, seed: '0', hosts, module: 'ebb-mutant.wasm', plant, gate };
    assert.deepEqual(JSON.parse(left['fixture.json']), about);
    checkIds(left['ids.txt'], RUNS);
    assert.match(left['divergence.txt'], new RegExp(`^first diverging step: ${parts.source}`));
    await checkTraces(path, each);
    return left;
}

/** Runs the command from the artefacts, with these out of its way: it must print and leave the same again. */
async function repeat(path, left, stdout) {
    const aside = `${path}.sh`;
    rmSync(path, { recursive: true });
    writeFileSync(aside, left['repro.sh']);
    const again = await command('sh', [aside]);
    assert.equal(again.code, 1, again.stderr);
    assert.equal(again.stdout, stdout);
    assert.deepEqual(read(path), left);
}

describe('a broken rule fails its gate and leaves what repeats it', { concurrency: 2 }, () => {
    for (const each of BROKEN) {
        test(`${each.gate}: ${each.rule}`, { timeout: 120000 }, async () => {
            const { stdout, path } = await runBroken(each);
            const left = await checkArtefacts(path, each);
            await repeat(path, left, stdout);
        });
    }
});

/* ---- fixtures that are not right ----------------------------------------------------------------------- */

/** Runs a copy of a fixture after `change` has had its way with it. */
async function runCopy(id, change, ...args) {
    const fixtures = mkdtempSync(join(dir, 'fixtures-'));
    const fixture = fixtureOf(id);
    change(fixture);
    writeFileSync(join(fixtures, `${id}.json`), JSON.stringify(fixture));
    const hosts = ['--hosts', 'native,node'];
    return await run(...given({ '--fixtures': fixtures }), ...hosts, '--artefacts', dir, ...args, id);
}

const MASKED = 'cancel.task.masked_defers_ack';

test('a fixture that expects something else fails in each host, and nothing but its gate', async () => {
    const { code, stdout } = await runCopy(MASKED, (f) => (f.expect.outcomes.worker = 'EBB_OK'));
    assert.equal(code, 1);
    assert.deepEqual(failures(stdout, MASKED), { native: 'fixture', node: 'fixture', 'node-adapter': 'parity' });
    assert.match(stdout, /node: EBB_CANCELLED/);
});

test('what an oracle finds is reported alike by the hosts', async () => {
    const { code, stdout } = await runCopy(MASKED, (f) => {
        f.script.splice(5);
        f.expect.steps.splice(5);
    });
    assert.equal(code, 1);
    const found = [...stdout.matchAll(/expected that it holds; (\w+): (oracle task_leak at the end .*)/g)];
    assert.deepEqual(found.map(([, host]) => host), ['native', 'node']);
    assert.equal(found[0][2], found[1][2]);
});

test('a line that is not understood is reported by each host', async () => {
    const { code, stdout } = await runCopy(MASKED, (f) => (f.script[2] = 'pmup'));
    assert.equal(code, 1);
    assert.match(stdout, /node: word 1: found 'pmup', expected a verb/);
    assert.match(stdout, /native: ebb fixture show: 2: .*found 'pmup', expected a verb/);
});

/** A command that says what the real one would if it had found that. */
function commandThatFinds(problem) {
    const path = join(mkdtempSync(join(dir, 'ebb-')), 'ebb');
    writeFileSync(path, `#!/bin/sh
${quoted(EBB)} "$@"
[ "$2" = run ] || { echo ${quoted(`ebb: ${MASKED}: line 4: ${problem}`)} >&2; exit 1; }
`, { mode: 0o755 });
    return path;
}

test('what the command finds by itself fails the gate that it belongs to', async () => {
    for (const [problem, gate, message] of [
        ['witness of task worker: it went back', 'witness', /the witness of task worker: .*: it went back/],
        ['oracle required_fields at event 9: x', 'fields', /native: oracle required_fields at event 9/],
        ['obligation row is lost', 'fixture', /line 4 `cancel job USER`, a rule: .*: obligation row is lost/],
    ]) {
        const args = given({ '--ebb': commandThatFinds(problem), '--artefacts': dir });
        const { code, stdout } = await run(...args, '--hosts', 'native,node', MASKED);
        assert.equal(code, 1, stdout);
        assert.deepEqual(failures(stdout, MASKED), { native: gate });
        assert.match(stdout, message);
    }
});

/** A command in which a rule is broken. */
function commandThatBreaks(rule) {
    const path = join(mkdtempSync(join(dir, 'ebb-')), 'ebb');
    writeFileSync(path, `#!/bin/sh\nexec ${quoted(MUTANT)} "$@" --plant ${rule}\n`, { mode: 0o755 });
    return path;
}

test('a rule that the command breaks fails the witness gate natively, with what repeats it', async () => {
    for (const { rule, id, gates, message } of [
        {
            rule: 'phase_monotone',
            id: 'cancel.task.witness_phase_monotone',
            gates: { native: 'fixture, witness', node: 'parity', 'node-adapter': 'parity' },
            message: /^first diverging step: line 11 `cancel job .*task worker: .* the phase went back\n/,
        },
        {
            rule: 'severity_monotone',
            id: 'cancel.task.reason_strengthen_monotone',
            gates: { native: 'fixture, witness', node: 'parity', 'node-adapter': 'parity' },
            message: /^first diverging step: line 14 `cancel-task .*task worker: .* severity weakened\n/,
        },
    ]) {
        const artefacts = join(dir, `native ${rule}`);
        const args = given({ '--ebb': commandThatBreaks(rule), '--artefacts': artefacts });
        const { code, stdout } = await run(...args, '--hosts', 'native,node', id);
        assert.equal(code, 1, stdout);
        assert.deepEqual(failures(stdout, id), gates);
        const path = join(artefacts, `witness-${id}`);
        const left = read(path);
        assert.match(left['divergence.txt'], message);
        assert.equal(JSON.parse(left['fixture.json']).seed, '0');
        await repeat(path, left, stdout);
    }
});

test('a fixture that holds again takes its artefacts away', async () => {
    await runCopy(MASKED, (f) => (f.expect.outcomes.worker = 'EBB_OK'));
    assert.ok(existsSync(join(dir, `fixture-${MASKED}`)));
    assert.equal((await runCopy(MASKED, () => {})).code, 0);
    assert.ok(!existsSync(join(dir, `fixture-${MASKED}`)));
});

test('there is a native trace to compare with, also if nobody asked for that host', async () => {
    await runCopy(MASKED, (f) => (f.expect.outcomes.worker = 'EBB_OK'), '--hosts', 'node');
    const path = join(dir, `fixture-${MASKED}`);
    assert.equal(show(join(path, 'native.trace')), show(join(path, 'node.trace')));
});

test('with another seed all hosts agree, and the ends are what was expected', async () => {
    for (const seed of ['1', '18446744073709551615']) {
        const { code, stdout } = await parity('--hosts', 'native,node', '--seed', seed);
        assert.equal(code, 0, stdout);
        assert.match(stdout, /\n54 passed, 0 failed\n$/);
        for (const line of stdout.match(/^ok .*$/gm)) { /* no scenario has a seed */
            assert.equal(line.endsWith(` (seed ${seed}, not its own)`), !line.includes('-adapter'), line);
        }
    }
});

test('the order is that of the seed in the file', async () => {
    const id = 'parity.nested_cascade';
    const change = (f) => Object.assign(f, { seed: 1, repro: `ebb fixture run ${id} --seed 1` });
    const own = await runCopy(id, change);
    assert.equal(own.code, 1);
    assert.deepEqual(failures(own.stdout, id), { native: 'fixture', node: 'fixture' });
    const other = await runCopy(id, change, '--seed', '0');
    assert.equal(other.code, 0, other.stdout);
    assert.match(other.stdout, /^ok node parity\.nested_cascade \(seed 0, not its own\)$/m);
});

/* ---- how it is called ---------------------------------------------------------------------------------- */

test('wrong arguments are refused with what was expected', async () => {
    const empty = mkdtempSync(join(dir, 'empty-'));
    for (const [args, expected] of [
        [[], /--ebb is missing; expected the ebb command, which `make` builds\nusage:/],
        [given({ '--dir': undefined }), /--dir is missing; expected the directory that `make wasm` stages/],
        [given({ '--fixtures': undefined }), /--fixtures is missing; expected the directory fixtures/],
        [given({ '--ebb': '/nowhere' }), /\/nowhere is not there \(--ebb\); expected the ebb command, which/],
        [given({ '--ebb': dir }), /can't be run \(--ebb\); expected the ebb command/],
        [given({ '--ebb': fileURLToPath(import.meta.url) }), /can't be run \(--ebb\)/],
        [given({ '--dir': empty }), /fixture\.js is not there \(--dir\); expected .* `make wasm` stages/],
        [given({ '--fixtures': '/nowhere' }), /\/nowhere is not there \(--fixtures\)/],
        [given({ '--fixtures': empty }), /no fixtures \(\*\.json\) in/],
        [[...GOOD, 'parity.nothing'], /no fixture 'parity\.nothing' in .*; there are:\n {2}cancel\.region/],
        [[...GOOD, '--frob'], /Unknown option '--frob'[^]*usage:/],
        [[...GOOD, '--hosts', 'node,firefox'], /has 'firefox'; expected some of native, node, chromium/],
        [[...GOOD, '--hosts', 'node,node'], /--hosts has 'node'; .* each once/],
        [[...GOOD, '--hosts', ''], /--hosts has ''/],
        [[...GOOD, '--seed', '-1'], /--seed/],
        [[...GOOD, '--seed', '18446744073709551616'], /from 0 to 18446744073709551615, not '1844/],
        [[...GOOD, '--module', 'ebb-mutant.wasm', '--plant', '16'], /number of an oracle, 1 to 15, not '16'/],
        [[...GOOD, '--plant', '3'], /ebb-lab\.wasm \(--module\): it has no rule to break; expected ebb-mut/],
        [[...GOOD, '--module', 'none.wasm'], /none\.wasm is not there \(--module\)/],
        [[...GOOD, '--module', 'page.html'], /page\.html \(--module\): /],
        [[...GOOD, '--module', '../ebb-web/ebb.wasm'], /no function lab_begin; expected ebb-lab\.wasm/],
    ]) {
        await assert.rejects(optionsOf(args), (error) => {
            assert.ok(error instanceof Usage, error.stack);
            assert.match(error.message, expected);
            return true;
        });
    }
});

test('a file that is no fixture is refused with what was expected', async () => {
    const fixtures = mkdtempSync(join(dir, 'bad-'));
    const partly = (parts) => JSON.stringify({ contract: 'ebb-cancel-v2', id: 'cancel.bad', ...parts });
    const start = { seed: 1, snapshot: 'empty-root', repro: 'ebb fixture run cancel.bad --seed 1' };
    for (const [content, expected] of [
        ['{', /cancel\.bad\.json: .*JSON/],
        ['null', /expected a fixture of the contract ebb-cancel-v2/],
        ['{"contract":"wasm-cancel-state-machine-v1"}', /expected a fixture of the contract ebb-cancel-v2/],
        ['{"contract":"ebb-cancel-v2","id":"other"}', /expected the id cancel\.bad/],
        ['{"contract":"ebb-cancel-v2","id":"cancel.bad","seed":1.5}', /expected a seed/],
        [partly({ seed: 1 }), /expected the snapshot 'empty-root', not 'undefined'/],
        [partly({ seed: 1, snapshot: 'full' }), /expected the snapshot 'empty-root', not 'full'/],
        [partly({ seed: 1, snapshot: 'empty-root', repro: 'ebb fixture run cancel.bad --seed 0' }),
            /expected the repro 'ebb fixture run cancel\.bad --seed 1', not 'ebb .* --seed 0'/],
        [partly(start), /expected a script/],
        [partly({ ...start, script: [] }), /expected expect\.phases/],
    ]) {
        writeFileSync(join(fixtures, 'cancel.bad.json'), content);
        await assert.rejects(optionsOf(given({ '--fixtures': fixtures })), expected);
    }
});

test('it says how it is called, and that it was called wrongly', async () => {
    const help = await run('--help');
    assert.equal(help.code, 0);
    assert.match(help.stdout, /^usage: node run\.js --ebb EBB/);
    const wrong = await run('--frob');
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /Unknown option '--frob'[^]*usage:/);
    assert.equal(wrong.stdout, '');
});

test('a word is quoted as the shell reads it back', () => {
    for (const word of ['plain-1.2/x', "it's here", '', '$HOME', 'a\\b', '`x`']) {
        assert.equal(execFileSync('sh', ['-c', `printf %s ${quoted(word)}`], { encoding: 'utf8' }), word);
    }
});
