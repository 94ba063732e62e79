/*
 * A copy of what `make wasm` has staged, with one mistake in it: in a source of the package, or in one of the kernel,
 * which is compiled with the commands of the build and linked into the package's module and the lab's.
 */
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

import { changed } from './random.js';

const MODULES = { ebb: 'ebb-web/ebb.wasm', 'ebb-lab': 'parity/ebb-lab.wasm' };
const PARTS = ['ebb-web', 'parity', 'tools'];

function run(command, cwd) {
    return new Promise((done) => {
        execFile('sh', ['-c', command], { cwd, timeout: 120000 }, (error, stdout, stderr) => done(error === null ? undefined : stderr));
    });
}

/** One at a time: each worker has its own. */
export class Bench {
    #stage;
    #build;
    #links;
    dir = mkdtempSync(join(tmpdir(), 'ebb-mutant-'));

    /** @param {string} stage build/wasm/web */
    constructor(stage) {
        this.#stage = resolve(stage);
        this.#build = dirname(this.#stage);
        for (const part of PARTS) cpSync(join(this.#stage, part), join(this.dir, part), { recursive: true });
    }

    close() {
        rmSync(this.dir, { recursive: true, force: true });
    }

    /** Why it could not be planted, or makes no difference; undefined if it is there. */
    async plant(mutant) {
        const text = changed(readFileSync(mutant.file, 'utf8'), mutant);
        if (mutant.file.endsWith('.c')) return await this.#compile(mutant.file, text);
        writeFileSync(join(this.dir, mutant.file.replace(/^web\//, '')), text);
        return undefined;
    }

    restore({ file }) {
        const put = (path) => cpSync(join(this.#stage, path), join(this.dir, path));
        if (file.endsWith('.c')) [...Object.values(MODULES), 'ebb-web/src/module.js'].forEach(put);
        else put(file.replace(/^web\//, ''));
    }

    async #compile(file, text) {
        const source = join(this.dir, 'mutant', file);
        mkdirSync(dirname(source), { recursive: true });
        writeFileSync(source, text);
        const object = `${source}.obj`;
        const { command, output } = this.#commandOf(file);
        const refused = await run(`${command.replace(output, object).replace(resolve(file), source).replace('-Werror', '-w')}`, this.#build);
        if (refused !== undefined) return 'does not compile';
        for (const [target, path] of Object.entries(MODULES)) {
            const link = this.#linkOf(target).replace(output.replace('ebb.dir', `${target}.dir`), object)
                .replace(` -o ${target}.wasm`, ` -o ${join(this.dir, path)}`);
            const failed = await run(link, this.#build);
            if (failed !== undefined) throw new Error(`link of ${target}: ${failed}`);
        }
        return this.#inline();
    }

    /** The text of the module, as the package has it. */
    #inline() {
        const wasm = readFileSync(join(this.dir, MODULES.ebb));
        const same = wasm.equals(readFileSync(join(this.#stage, MODULES.ebb)));
        const text = readFileSync(join(this.#stage, 'ebb-web/src/module.js'), 'utf8');
        const inlined = text.replace(/const WASM = '[^']*'/, () => `const WASM = '${wasm.toString('base64')}'`);
        writeFileSync(join(this.dir, 'ebb-web/src/module.js'), inlined);
        return same ? 'leaves the module as it is' : undefined;
    }

    #commandOf(file) {
        const all = JSON.parse(readFileSync(join(this.#build, 'compile_commands.json')));
        const { command } = all.find((each) => each.file === resolve(file) && each.command.includes('/ebb.dir/'));
        return { command, output: /-o (\S+)/.exec(command)[1] };
    }

    #linkOf(target) {
        this.#links ??= Object.fromEntries(Object.keys(MODULES).map((name) => {
            const commands = execFileSync('ninja', ['-C', this.#build, '-t', 'commands', `${name}.wasm`], { encoding: 'utf8' });
            return [name, commands.trim().split('\n').at(-1)];
        }));
        return this.#links[target];
    }
}
