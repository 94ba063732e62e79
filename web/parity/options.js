/*
 * What run.js is asked to do: its arguments, and the files that they name. Whatever is wrong with them is a
 * Usage that says what was expected.
 */
import { accessSync, constants, existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { SNAPSHOT } from './fixture.js';
import { HOSTS, stagedModules } from './hosts.js';

export const USAGE = `usage: node run.js --ebb EBB --dir DIR --fixtures DIR [ID...]
--ebb        the command, build/release/ebb
--dir        what \`make wasm\` has staged, build/wasm/web
--fixtures   where the fixtures are, fixtures/cancel
--hosts      native,node,chromium: which of them; the first is what the others are compared with
--seed       another one than the fixtures' own: then the order of events need not be what they expect
--module     ebb-lab.wasm in DIR/parity: runs the scripts; if it is given, it also runs the package
--plant      the number of an oracle in include/ebb/oracle.def, from 0: its rule is broken, by ebb-mutant.wasm
--artefacts  where failures are written: else DIR/../parity-failures`;

const NAMES = ['ebb', 'dir', 'fixtures', 'hosts', 'seed', 'module', 'plant', 'artefacts'];
const CONTRACT = 'ebb-cancel-v2';
const STAGED = ['parity/fixture.js', 'parity/adapter.js', 'parity/scenarios.js', 'ebb-web/src/module.js'];

/** What is wrong with how it was called. */
export class Usage extends Error {}

function parsed(args) {
    const options = Object.fromEntries(NAMES.map((name) => [name, { type: 'string' }]));
    options.help = { type: 'boolean' };
    try {
        return parseArgs({ args, allowPositionals: true, options });
    } catch (error) {
        throw new Usage(`${error.message}\n${USAGE}`);
    }
}

function mustBeThere(path, option, what) {
    if (!existsSync(path)) throw new Usage(`${path} is not there (${option}); expected ${what}`);
    return path;
}

/** The path that an option names. */
function need(values, name, what) {
    if (values[name] === undefined) throw new Usage(`--${name} is missing; expected ${what}\n${USAGE}`);
    return mustBeThere(resolve(values[name]), `--${name}`, what);
}

function commandOf(values) {
    const ebb = need(values, 'ebb', 'the ebb command, which `make` builds');
    try {
        accessSync(ebb, constants.X_OK);
        if (statSync(ebb).isFile()) return ebb;
    } catch {
        /* said below */
    }
    throw new Usage(`${ebb} can't be run (--ebb); expected the ebb command`);
}

function stageOf(values) {
    const what = 'the directory that `make wasm` stages, build/wasm/web';
    const dir = need(values, 'dir', what);
    for (const file of STAGED) mustBeThere(join(dir, file), '--dir', what);
    return dir;
}

function numbersOf({ seed, plant }) {
    if (seed !== undefined && !(/^\d{1,20}$/.test(seed) && BigInt(seed) < 2n ** 64n)) {
        throw new Usage(`--seed takes a whole number from 0 to 18446744073709551615, not '${seed}'`);
    }
    if (plant !== undefined && !(/^\d{1,2}$/.test(plant) && plant >= 1 && plant <= 15)) {
        throw new Usage(`--plant takes the number of an oracle, 1 to 15, not '${plant}'`);
    }
    return { seed, plant: plant === undefined ? undefined : Number(plant) };
}

function hostsOf({ hosts = Object.keys(HOSTS).join(',') }) {
    const names = hosts.split(',');
    const unknown = names.find((name, i) => !Object.hasOwn(HOSTS, name) || names.indexOf(name) !== i);
    if (unknown === undefined) return names;
    throw new Usage(`--hosts has '${unknown}'; expected some of ${Object.keys(HOSTS).join(', ')}, each once`);
}

async function moduleOf(dir, name, plant, unfit) {
    const path = mustBeThere(join(dir, 'parity', name), '--module', 'a module that `make wasm` has staged');
    const module = await WebAssembly.compile(readFileSync(path)).catch((error) => {
        throw new Usage(`${path} (--module): ${error.message}`);
    });
    const why = unfit(module, plant);
    if (why !== undefined) throw new Usage(`${path} (--module): ${why}`);
    return module;
}

/* ---- fixtures ------------------------------------------------------------------------------------------ */

function fixturesIn(dir, ids) {
    const files = readdirSync(dir).filter((name) => name.endsWith('.json'));
    if (files.length === 0) throw new Usage(`no fixtures (*.json) in ${dir} (--fixtures)`);
    const all = files.map((name) => name.slice(0, -'.json'.length)).sort();
    const unknown = ids.find((id) => !all.includes(id));
    if (unknown !== undefined) {
        throw new Usage(`there is no fixture '${unknown}' in ${dir}; there are:\n  ${all.join('\n  ')}`);
    }
    return (ids.length === 0 ? all : [...new Set(ids)]).map((id) => loadFixture(join(dir, `${id}.json`), id));
}

function loadFixture(path, id) {
    let fixture;
    try {
        fixture = JSON.parse(readFileSync(path, 'utf8'));
    } catch (error) {
        throw new Usage(`${path}: not JSON: ${error.message}`);
    }
    const wrong = missing(fixture, id);
    if (wrong !== undefined) throw new Usage(`${path}: expected ${wrong}`);
    return fixture;
}

/** What is needed to run it; `ebb fixture run` looks at all the rest. */
function missing(fixture, id) {
    if (fixture?.contract !== CONTRACT) return `a fixture of the contract ${CONTRACT}`;
    if (fixture.id !== id) return `the id ${id}`;
    if (!Number.isSafeInteger(fixture.seed) || fixture.seed < 0) return 'a seed that is a whole number';
    if (fixture.snapshot !== SNAPSHOT) return `the snapshot '${SNAPSHOT}', not '${fixture.snapshot}'`;
    const repro = `ebb fixture run ${id} --seed ${fixture.seed}`;
    if (fixture.repro !== repro) return `the repro '${repro}', not '${fixture.repro}'`;
    if (!Array.isArray(fixture.script)) return 'a script that is an array of lines';
    const parts = ['phases', 'outcomes', 'closure', 'results', 'events', 'steps', 'fingerprint', 'parity'];
    const part = parts.find((name) => fixture.expect?.[name] === undefined);
    return part === undefined ? undefined : `expect.${part}`;
}

/** @param {string[]} argv */
export async function optionsOf(argv) {
    const { values, positionals } = parsed(argv);
    if (values.help) return { help: true };
    const ebb = commandOf(values);
    const dir = stageOf(values);
    const fixtures = need(values, 'fixtures', 'the directory fixtures/cancel');
    const given = { ...numbersOf(values), hosts: hostsOf(values), list: fixturesIn(fixtures, positionals) };
    const staged = await stagedModules(dir);
    const moduleName = values.module ?? 'ebb-lab.wasm';
    const module = await moduleOf(dir, moduleName, given.plant, staged.unfit);
    const ownModule = values.module === undefined; /* then the package has its own */
    const artefacts = resolve(values.artefacts ?? join(dir, '../parity-failures'));
    return { ...given, ebb, dir, fixtures, staged, module, moduleName, ownModule, artefacts };
}
