/*
 * Runs the fixtures of the cancel contract natively, in Node and in Chromium, from the same files:
 *
 *     node web/parity/run.js --ebb build/release/ebb --dir build/wasm/web --fixtures fixtures/cancel [ID...]
 *
 * One line a fixture and host, then `N passed, N failed`. Exits with 1 if a gate fails, after it has written
 * what is needed to look into it (artefacts.js); with 2 if it could not run.
 */
import { fileURLToPath } from 'node:url';

import { quoted, removeArtefacts, writeArtefacts } from './artefacts.js';
import { adapterGate, fieldsGate, first, fixtureGate, parityGate, tell, witnessGate } from './gates.js';
import { HOSTS, Native } from './hosts.js';
import { USAGE, Usage, optionsOf } from './options.js';

/* ---- running ------------------------------------------------------------------------------------------- */

async function withHosts(o, body) {
    const opened = [];
    try {
        for (const name of o.hosts) opened.push(await HOSTS[name].open(o));
        return await body(opened);
    } finally {
        for (const host of opened.reverse()) await host.close();
    }
}

/** The parity fingerprint of what was played, from its trace. */
function withParity(record, parity) {
    const hash = record.trace === '' ? undefined : parity(Buffer.from(record.trace, 'base64'));
    return { ...record, actual: { ...record.actual, parity: hash } };
}

/** The Records of each fixture: of its script by host, and of the scenario of its name by "HOST-adapter". */
async function runAll(opened, list, { SCENARIOS: scenarios, parity }) {
    const results = new Map(list.map(({ id }) => [id, { scripts: new Map(), adapters: new Map() }]));
    for (const host of opened) {
        for (const fixture of list) {
            const { scripts, adapters } = results.get(fixture.id);
            scripts.set(host.name, await host.run(fixture));
            if (host.play === undefined || !Object.hasOwn(scenarios, fixture.id)) continue;
            adapters.set(`${host.name}-adapter`, withParity(await host.play(fixture), parity));
        }
    }
    return results;
}

/** The gates that a script's run in one host goes through. */
function judgeScript(fixture, record, host, [reference, referenceRecord], ownSeed) {
    return {
        fixture: fixtureGate(fixture, record, host, ownSeed),
        parity: host === reference ? [] : parityGate(referenceRecord, record, [reference, host]),
        fields: fieldsGate(record, host),
        witness: witnessGate(record, host),
    };
}

function judgeAdapter(fixture, record, host, reference) {
    return {
        parity: adapterGate(fixture, reference, record, host),
        fields: fieldsGate(record, host),
        witness: witnessGate(record, host),
    };
}

/** @returns {[string, object][]} of each host: the differences that each gate found */
function judgeAll(fixture, { scripts, adapters }, seed) {
    const [reference] = scripts;
    const ownSeed = isOwnSeed(fixture, seed);
    const script = ([host, record]) => [host, judgeScript(fixture, record, host, reference, ownSeed)];
    const adapter = ([host, record]) => [host, judgeAdapter(fixture, record, host, reference[1])];
    return [...[...scripts].map(script), ...[...adapters].map(adapter)];
}

/* ---- telling ------------------------------------------------------------------------------------------- */

function isOwnSeed(fixture, seed) {
    return seed === undefined || BigInt(seed) === BigInt(fixture.seed);
}

/** With another seed the order is not compared: a run that passes says so. */
function otherSeed(fixture, seed) {
    return isOwnSeed(fixture, seed) ? '' : ` (seed ${seed}, not its own)`;
}

/** Counts, and prints a line for each fixture and host. */
class Tally {
    passed = 0;
    failed = 0;

    take(fixture, host, gates, seedNote) {
        const broken = Object.entries(gates).filter(([, differences]) => differences.length > 0);
        if (broken.length === 0) {
            this.passed++;
            console.log(`ok ${host} ${fixture.id}${seedNote}`);
            return;
        }
        const firsts = broken.map(([gate, differences]) => `${gate}: ${tell(fixture, first(differences))}`);
        this.fail(`${host} ${fixture.id}: ${broken.map(([gate]) => gate).join(', ')}`, firsts);
    }

    fail(what, lines = []) {
        this.failed++;
        console.log([`not ok ${what}`, ...lines].join('\n    '));
    }
}

/** A page may ask its own server only. */
function judgePages(opened, tally) {
    for (const { name, foreign = [] } of opened) {
        if (foreign.length > 0) tally.fail(`${name}: it asked for ${foreign.join(', ')}`);
    }
}

/** What each gate found, in all hosts. */
function byGate(verdicts) {
    const gates = new Map();
    for (const [gate, differences] of verdicts.flatMap(([, found]) => Object.entries(found))) {
        if (differences.length > 0) gates.set(gate, [...gates.get(gate) ?? [], ...differences]);
    }
    return gates;
}

function reproOf(o, id) {
    const words = ['node', fileURLToPath(import.meta.url), '--ebb', o.ebb, '--dir', o.dir];
    words.push('--fixtures', o.fixtures, '--hosts', o.hosts.join(','));
    if (!o.ownModule) words.push('--module', o.moduleName);
    if (o.plant !== undefined) words.push('--plant', String(o.plant));
    if (o.seed !== undefined) words.push('--seed', o.seed);
    return [...words, '--artefacts', o.artefacts, id].map(quoted).join(' ');
}

/** There is always a native trace to compare with, also if nobody asked for that host. */
async function withNative(o, fixture, scripts) {
    if (scripts.has('native')) return scripts;
    const native = await Native.open(o);
    try {
        return new Map([['native', await native.run(fixture)], ...scripts]);
    } finally {
        await native.close();
    }
}

async function leave(o, fixture, { scripts, adapters }, gates) {
    const records = new Map([...await withNative(o, fixture, scripts), ...adapters]);
    const seed = String(o.seed ?? fixture.seed);
    const about = { id: fixture.id, seed, hosts: o.hosts, module: o.moduleName, plant: o.plant };
    const repro = reproOf(o, fixture.id);
    for (const [gate, differences] of gates) {
        const path = writeArtefacts({ dir: o.artefacts, gate, fixture, about, records, differences, repro });
        console.log(`    ${gate}: see ${path}`);
    }
    console.log(`    repro: ${repro}`);
}

async function main(argv) {
    const o = await optionsOf(argv);
    if (o.help) {
        console.log(USAGE);
        return 0;
    }
    const tally = new Tally();
    const results = await withHosts(o, async (opened) => {
        const all = await runAll(opened, o.list, { ...o.staged, parity: (bytes) => o.staged.parityOf(o.module, bytes) });
        judgePages(opened, tally);
        return all;
    });
    for (const fixture of o.list) {
        const result = results.get(fixture.id);
        const verdicts = judgeAll(fixture, result, o.seed);
        const seedNote = otherSeed(fixture, o.seed);
        for (const [host, gates] of verdicts) {
            tally.take(fixture, host, gates, result.scripts.has(host) ? seedNote : '');
        }
        removeArtefacts(o.artefacts, fixture.id);
        const gates = byGate(verdicts);
        if (gates.size > 0) await leave(o, fixture, result, gates);
    }
    console.log(`${tally.passed} passed, ${tally.failed} failed`);
    return tally.failed === 0 ? 0 : 1;
}

try {
    process.exitCode = await main(process.argv.slice(2));
} catch (error) {
    console.error(error instanceof Usage ? error.message : error.stack);
    process.exitCode = 2;
}
