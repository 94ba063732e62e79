// only: node
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import test from 'node:test';
import { brotliCompressSync } from 'node:zlib';

const root = new URL('../', import.meta.url);
const description = JSON.parse(readFileSync(new URL('package.json', root)));

test('the package is imported by its name, without a bundler', async () => {
    const [byName, byPath] = await Promise.all([import('ebb-web'), import('../index.js')]);
    assert.equal(byName.Runtime, byPath.Runtime);
    assert.deepEqual(Object.keys(byName).sort(), Object.keys(byPath).sort());
});

test('ebb-web/core has the same names, needs a module, and does not import the text of one', async () => {
    const [whole, core] = await Promise.all([import('ebb-web'), import('ebb-web/core')]);
    assert.deepEqual(Object.keys(core).sort(), Object.keys(whole).sort());
    for (const name of Object.keys(core).filter((each) => each !== 'Runtime')) assert.equal(core[name], whole[name]);
    const { VirtualHost } = await import('./virtual-host.js');
    const { capabilities } = new VirtualHost();
    assert.throws(() => new core.Runtime(capabilities), { name: 'TypeError', message: /core has none of its own/ });
    const module = new WebAssembly.Module(readFileSync(new URL('ebb.wasm', root)));
    assert.ok(new core.Runtime(capabilities, { module }).region() instanceof whole.Region);
    assert.ok(new whole.Runtime(capabilities) instanceof core.Runtime);
    assert.ok(!reached('core.js').has('src/module.js'));
    assert.ok(reached('index.js').has('src/module.js'));
});

/** The files that importing one loads. */
function reached(file, all = new Set()) {
    if (all.has(file)) return all;
    all.add(file);
    const source = readFileSync(new URL(file, root), 'utf8');
    for (const [, from] of source.matchAll(/\bfrom '([^']+)'/g)) {
        reached(new URL(from, new URL(file, root)).href.slice(root.href.length), all);
    }
    return all;
}

test('the module is at most 40 KB with brotli', () => {
    const { length } = brotliCompressSync(readFileSync(new URL('ebb.wasm', root)));
    assert.ok(length <= 40960, `${length} bytes`);
});

test('what it exports is what its types declare', async () => {
    const types = readFileSync(new URL('index.d.ts', root), 'utf8');
    const values = [...types.matchAll(/^export (?:class|function|const) (\w+)/gm)].map(([, name]) => name);
    const exported = Object.keys(await import('../index.js'));
    assert.deepEqual(exported.sort(), values.sort());
});

test('every file that package.json names is there', () => {
    const named = [description.types, ...description.files, ...Object.values(description.exports)
        .flatMap((entry) => (typeof entry === 'string' ? [entry] : Object.values(entry)))];
    for (const file of named) assert.ok(existsSync(new URL(file, root)), file);
    assert.equal(description.type, 'module');
    assert.equal(description.sideEffects, false);
    assert.equal(description.dependencies, undefined);
});

test('what is not exported can not be imported by the package\'s name', async () => {
    await assert.rejects(import('ebb-web/src/runtime.js'), { code: 'ERR_PACKAGE_PATH_NOT_EXPORTED' });
});

test('importing it does nothing: no module is compiled, nothing of the host is touched', async () => {
    const { execFileSync } = await import('node:child_process');
    const program = `
        const log = [];
        for (const name of ['setTimeout', 'queueMicrotask', 'MessageChannel', 'fetch', 'performance']) {
            Object.defineProperty(globalThis, name, { get() { log.push(name); } });
        }
        WebAssembly.Module = class { constructor() { log.push('compiled'); } };
        await import(${JSON.stringify(new URL('index.js', root).href)});
        console.log(JSON.stringify(log));`;
    const out = execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' });
    assert.deepEqual(JSON.parse(out), []);
});

test('the sources import nothing but each other', () => {
    const files = ['index.js', 'core.js', ...readdirSync(new URL('src', root)).map((file) => `src/${file}`)];
    assert.ok(files.length > 8);
    for (const file of files) {
        const source = readFileSync(new URL(file, root), 'utf8');
        for (const [, from] of source.matchAll(/\bfrom '([^']+)'/g)) assert.match(from, /^\.\//, file);
    }
});

/** The members of a class or an interface in index.d.ts, without comments. */
function declared(name) {
    const types = readFileSync(new URL('index.d.ts', root), 'utf8').replace(/\/\*[^]*?\*\//g, '');
    const [, body] = new RegExp(`^export (?:class|interface) ${name}\\b[^{]*\\{([^]*?)^\\}`, 'm').exec(types);
    const members = [...body.matchAll(/^    (?:readonly )?(\w+)(?=[?:<(])/gm)].map(([, member]) => member);
    return [...new Set(members)].filter((member) => member !== 'constructor');
}

async function sample(t) {
    const { virtual } = await import('./virtual-host.js');
    const { host, rt } = virtual(t);
    const region = rt.region();
    let obligation;
    const task = region.spawn(async (cx) => {
        obligation = cx.reserve('ack');
        await cx.sleep(1000);
    });
    await host.settle();
    region.cancel({ message: 'why' });
    const live = {
        Runtime: rt, Region: region, Task: task, Cx: task.cx, Obligation: obligation,
        Cancelled: task.cx.reason(),
        Stats: rt.stats(), RegionInfo: region.info(), TaskInfo: rt.info(task.id), Witness: task.witness(),
        Causes: region.causes(), Cause: region.causes().links[0],
    };
    const report = await host.until(region.done);
    return { ...live, Report: report, Work: report.leaked[0], TraceEvent: rt.events().at(-1) };
}

test('every class has every member that its type declares', async (t) => {
    const things = await sample(t);
    for (const name of ['Runtime', 'Region', 'Task', 'Cx', 'Obligation', 'Cancelled']) {
        for (const member of declared(name)) assert.ok(member in things[name], `${name}.${member}`);
    }
});

test('every object has exactly the fields that its type declares', async (t) => {
    const things = await sample(t);
    const interfaces = ['Stats', 'RegionInfo', 'TaskInfo', 'Witness', 'Causes', 'Cause', 'Report', 'Work'];
    for (const name of [...interfaces, 'TraceEvent']) {
        assert.deepEqual(Object.keys(things[name]).sort(), declared(name).sort(), name);
    }
});

test('the unions of names are those of the kernel', async (t) => {
    const { virtual } = await import('./virtual-host.js');
    const { rt } = virtual(t);
    const types = readFileSync(new URL('index.d.ts', root), 'utf8').replace(/\/\*[^]*?\*\//g, '');
    const union = (name) => {
        const [, members] = new RegExp(`^export type ${name} =([^;]*);`, 'm').exec(types);
        return [...members.matchAll(/'(\w+)'/g)].map(([, each]) => each);
    };
    const names = (table, from, to) => {
        const all = Array.from({ length: to - from + 1 }, (_, i) => rt.abi.name(table, from + i));
        return all.filter((name) => name !== undefined);
    };
    assert.deepEqual(union('CancelKind'), names(2, 1, 9));
    assert.deepEqual(union('Severity'), names(6, 0, 3));
    assert.deepEqual(union('Phase'), names(4, 1, 6));
    assert.deepEqual(union('RegionState'), names(5, 1, 5));
    assert.deepEqual(union('Lane'), names(7, 0, 3));
    assert.deepEqual(union('ObligationKind'), names(8, 1, 6));
    const events = names(3, 1, 79).filter((name) => !['time', 'turn', 'text'].includes(name));
    assert.deepEqual([...union('CancelEventType'), ...union('EventType')].sort(), events.sort());
    const codes = new Set([...names(0, -100, -1), 'EBB_ERR_ABI', 'EBB_ERR_CAPABILITY', 'EBB_TRAPPED']);
    for (const code of union('ErrorCode')) assert.ok(codes.has(code), code);
});
