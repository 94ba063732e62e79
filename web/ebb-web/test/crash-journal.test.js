// only: node
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';

import { virtual } from './virtual-host.js';
import { packageFile, trapping } from './wasm-bytes.js';

const { EBB } = process.env;
const skip = EBB ? false : 'EBB does not name the native command';

test('the native command reads journal and trace of an instance that trapped', { skip }, async (t) => {
    const module = trapping(await packageFile('ebb.wasm'), ['region_force']);
    const { host, rt } = virtual(t, { module, journal: 1 << 16 });
    rt.root.done.catch(() => {});
    const region = rt.region();
    region.done.catch(() => {});
    region.spawn((cx) => cx.sleep(1000), { name: 'the last one' });
    await host.settle();
    region.cancel({ kind: 'DISCONNECT', message: 'just before' });
    assert.throws(() => region.force(), { code: 'EBB_TRAPPED' });
    const dir = mkdtempSync(join(tmpdir(), 'ebb-web-'));
    t.after(() => rmSync(dir, { recursive: true }));
    writeFileSync(join(dir, 'journal'), rt.crash.journal);
    writeFileSync(join(dir, 'trace'), rt.crash.trace);
    const ebb = (...args) => spawnSync(EBB, args, { encoding: 'utf8', cwd: dir });
    const shown = ebb('journal', 'show', 'journal');
    assert.equal(shown.status, 0, shown.stderr);
    assert.match(shown.stdout, /the last one/);
    assert.match(shown.stdout, /just before/);
    const replayed = ebb('journal', 'replay', 'journal', '--compare', 'trace');
    assert.equal(replayed.status, 0, replayed.stderr);
    const verified = ebb('trace', 'verify', '--strict', 'trace');
    assert.equal(verified.status, 0, verified.stdout + verified.stderr);
});
