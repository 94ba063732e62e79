/*
 * Packages from npm that tests need and the project does not have: installed by name into a directory of the build,
 * once, by the ordinary npm.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const PACKAGES = ['vite@6', 'webpack@5', 'axe-core@4'];
const LIMIT_MS = 300000;

function npm(dir, ...args) {
    return new Promise((done, failed) => {
        execFile('npm', args, { cwd: dir, timeout: LIMIT_MS }, (error, stdout, stderr) => {
            if (error === null) done(stdout);
            else failed(new Error(`npm ${args.join(' ')} in ${dir}: ${stderr || error.message}`));
        });
    });
}

/**
 * @param {string} [dir] where they are, build/npm of the tree
 * @returns {Promise<{ dir: string, load: (name: string) => Promise<object>, file: (path: string) => string }>} to import
 *     a package, and the path of a file in one
 */
export async function installed(dir = resolve(process.env.EBB_NPM ?? 'build/npm')) {
    const stamp = join(dir, `installed ${PACKAGES.join(' ').replaceAll('/', '_')}`);
    if (!existsSync(stamp)) {
        mkdirSync(dir, { recursive: true });
        writeFileSync(join(dir, 'package.json'), '{ "private": true, "type": "module" }\n');
        await npm(dir, 'install', '--no-audit', '--no-fund', '--no-package-lock', ...PACKAGES);
        writeFileSync(stamp, '');
    }
    const require = createRequire(join(dir, 'package.json'));
    return {
        dir,
        load: async (name) => await import(pathToFileURL(require.resolve(name)).href),
        file: (path) => join(dir, 'node_modules', path),
    };
}
