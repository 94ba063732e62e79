/*
 * The tests of the package in one process: node units.js DIR. Left out are those that start processes of their own or
 * measure memory, which take as long as all the others.
 */
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const APART = /^(process|flat-memory|random|random-native|fetch-server|package|readme|crash-journal)\.test\.js$/;
const dir = resolve(process.argv[2]);

for (const name of readdirSync(dir).filter((file) => file.endsWith('.test.js') && !APART.test(file)).sort()) {
    await import(pathToFileURL(join(dir, name)).href);
}
