#!/usr/bin/env node
/*
 * What `ebb files DIR --port 0` is to its caller, for the tests of the tools themselves, which must not need
 * a build: one line with the URL, files below DIR, exit 0 on SIGTERM.
 */
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.wasm': 'application/wasm' };
const [verb, dir, flag, port] = process.argv.slice(2);
if (verb !== 'files' || flag !== '--port')
    throw new Error(`expected: files DIR --port N, not: ${process.argv.slice(2).join(' ')}`);

const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, 'http://localhost').pathname));
    try {
        const body = await readFile(join(dir, path));
        response.writeHead(200, { 'content-type': TYPES[extname(path)] ?? 'text/plain' }).end(body);
    } catch {
        response.writeHead(404).end();
    }
});
server.listen(Number(port), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/`));
process.on('SIGTERM', () => process.exit(0));
