/*
 * What a gate that fails leaves behind, in DIR/<gate>-<id>/:
 *
 *     fixture.json     the fixture's id and seed, with the gate, the module and what was planted
 *     ids.txt          the tasks and regions that took part, as each host had them
 *     HOST.trace       the traces, native and browser: `ebb trace show` opens them
 *     divergence.txt   the step at which it first parted, and then everything else that differs
 *     repro.sh         the command that repeats it
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { first, tell } from './gates.js';

export const GATES = ['fixture', 'parity', 'fields', 'witness'];

/** Those of an earlier run would be taken for this one's. */
export function removeArtefacts(dir, id) {
    for (const gate of GATES) rmSync(join(dir, `${gate}-${id}`), { recursive: true, force: true });
}

/**
 * @param {{ dir: string, gate: string, fixture: object, about: object, records: Map<string, object>,
 *     differences: object[], repro: string }} failure `about` has the id and the seed; `records` are by host
 * @returns {string} the directory that was written
 */
export function writeArtefacts({ dir, gate, fixture, about, records, differences, repro }) {
    const path = join(dir, `${gate}-${fixture.id}`);
    mkdirSync(path, { recursive: true });
    const write = (name, content, mode) => writeFileSync(join(path, name), content, { mode });
    write('fixture.json', `${JSON.stringify({ ...about, gate }, null, 2)}\n`);
    write('ids.txt', [...records].map(([host, { ids }]) => `${host}: ${ids.join(', ')}\n`).join(''));
    for (const [host, { trace }] of records) write(`${host}.trace`, Buffer.from(trace, 'base64'));
    write('divergence.txt', divergence(fixture, differences));
    write('repro.sh', `#!/bin/sh\nexec ${repro}\n`, 0o755);
    return path;
}

function divergence(fixture, differences) {
    const all = [...new Set(differences.map((each) => `    ${tell(fixture, each)}\n`))];
    return `first diverging step: ${tell(fixture, first(differences))}\nall that differs:\n${all.join('')}`;
}

/** A word as the shell reads it back. */
export function quoted(word) {
    return /^[\w\-./+:@%=,]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
