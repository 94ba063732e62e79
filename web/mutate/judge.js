/*
 * Who finds a mistake: parity in Node first, then the tests of the package in one process, which ends at the first that
 * fails. What takes too long is ended, and counts as found.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';

const RUN = fileURLToPath(new URL('../parity/run.js', import.meta.url));
const LONGEST_MS = 600000; /* a machine may have much else to do */
const UNITS = fileURLToPath(new URL('units.js', import.meta.url));

/** How a process ends: 'passes', 'fails' or 'hangs'. Its whole group is ended. */
function outcome(args, limitMs, failed) {
    return new Promise((done) => {
        const child = spawn(process.execPath, args, { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
        const end = (how) => {
            clearTimeout(timer);
            try {
                process.kill(-child.pid, 'SIGKILL');
            } catch {
                /* it is gone */
            }
            done(how);
        };
        const timer = setTimeout(() => end('hangs'), limitMs);
        let text = '';
        child.stdout.on('data', (bytes) => {
            text = text.slice(-1000) + bytes;
            if (failed.test(text)) end('fails');
        });
        child.once('exit', (code) => end(code === 0 ? 'passes' : 'fails'));
    });
}

function stages(dir, { ebb, fixtures }) {
    const parity = [RUN, '--ebb', ebb, '--dir', dir, '--fixtures', fixtures, '--hosts', 'node', '--artefacts', join(dir, 'failures')];
    return { parity: [parity, /^not ok/m], 'unit tests': [[UNITS, join(dir, 'ebb-web/test')], /^ {0,4}not ok/m] };
}

/**
 * How long each may take: five times what it takes without a mistake, on this machine and now, and 5 s.
 * @param {string} dir a copy of the stage
 */
export async function limits(dir, o) {
    const limitsMs = {};
    for (const [name, [args, failed]] of Object.entries(stages(dir, o))) {
        const began = performance.now();
        const how = await outcome(args, LONGEST_MS, failed);
        if (how !== 'passes') throw new Error(`without a mistake ${name} must pass: it ${how}`);
        limitsMs[name] = 5000 + 5 * (performance.now() - began);
    }
    return limitsMs;
}

/** @returns {Promise<string | undefined>} who has found it: 'parity', 'unit tests', 'parity: it hangs' */
export async function judge(dir, o, limitsMs) {
    for (const [name, [args, failed]] of Object.entries(stages(dir, o))) {
        const how = await outcome(args, limitsMs[name], failed);
        if (how !== 'passes') return how === 'hangs' ? `${name}: it hangs` : name;
    }
    return undefined;
}
