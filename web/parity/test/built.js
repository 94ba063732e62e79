/*
 * What the tests need, from the root of the tree: $EBB is the command (build/release/ebb), $EBB_MUTANT the one
 * with planted bugs (build/release/tests/ebb-mutant), $EBB_WEB what `make wasm` has staged (build/wasm/web).
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const EBB = resolve(process.env.EBB ?? 'build/release/ebb');
export const MUTANT = resolve(process.env.EBB_MUTANT ?? 'build/release/tests/ebb-mutant');
export const WEB = resolve(process.env.EBB_WEB ?? 'build/wasm/web');
export const FIXTURES = resolve('fixtures/cancel');

for (const [path, how] of [
    [FIXTURES, 'the tests run in the root of the tree'],
    [EBB, '`make` builds it'],
    [MUTANT, '`make` builds it'],
    [join(WEB, 'parity/ebb-mutant.wasm'), '`make wasm` builds it'],
]) {
    if (!existsSync(path)) throw new Error(`${path} is not there: ${how}`);
}

export function moduleOf(name) {
    return new WebAssembly.Module(readFileSync(join(WEB, 'parity', name)));
}

export const IDS = readdirSync(FIXTURES).map((name) => name.replace(/\.json$/, '')).sort();

/** A fixture of its own, to be changed. */
export function fixtureOf(id) {
    return JSON.parse(readFileSync(join(FIXTURES, `${id}.json`), 'utf8'));
}
