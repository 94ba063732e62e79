/*
 * Installs what package.json names, by npm, into the staged directory: `node install.js`. Does nothing if it is there.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const here = (path) => new URL(path, import.meta.url);

function installed({ dependencies, devDependencies }) {
    return Object.entries({ ...dependencies, ...devDependencies }).every(([name, version]) => {
        const file = here(`node_modules/${name}/package.json`);
        return existsSync(file) && (version.startsWith('file:') || JSON.parse(readFileSync(file, 'utf8')).version === version);
    });
}

if (!installed(JSON.parse(readFileSync(here('package.json'), 'utf8')))) {
    const args = ['install', '--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error'];
    try {
        execFileSync('npm', args, { cwd: here('.'), stdio: 'inherit' });
    } catch (error) {
        console.error(`npm could not install the packages of web/examples/package.json: ${error.message}`);
        console.error('These tests need npm and its registry: React, Vitest, Jest and jsdom are not in Debian.');
        process.exitCode = 1;
    }
}
