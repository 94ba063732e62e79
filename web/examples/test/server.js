import { once } from 'node:events';
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const stage = join(dirname(fileURLToPath(import.meta.url)), '../..');
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.wasm': 'application/wasm' };
const WORDS = ['ebb', 'ebbing', 'ebony', 'flood', 'flow', 'tide', 'tidy'];

/** What the programs of the guide talk to. `log` has each request that is not for a file. */
class Api {
    log = [];
    uploads = new Map();
    held = []; /* answers to searches that a test lets go */

    answer(request, response) {
        const url = new URL(request.url, 'http://localhost');
        this.log.push(`${request.method} ${url.pathname}${url.search}`);
        if (url.pathname === '/api/search') this.#search(url, response);
        else if (url.pathname === '/api/price') response.end('42');
        else this.#upload(request, url, response);
    }

    #search(url, response) {
        const q = url.searchParams.get('q');
        const send = () => response.end(JSON.stringify(WORDS.filter((word) => word.startsWith(q))));
        if (q === 'e') this.held.push(send); /* the first letter is slow */
        else send();
    }

    #upload(request, url, response) {
        const id = url.pathname.split('/')[3];
        let size = 0;
        request.on('data', (data) => (size += data.length));
        request.on('end', () => {
            if (request.method === 'POST') this.uploads.set('1', 0);
            else if (request.method === 'DELETE') this.uploads.delete(id);
            else this.uploads.set(id, this.uploads.get(id) + size);
            if (request.method === 'PUT' && this.refuse) response.statusCode = 507;
            if (request.method === 'PUT' && this.hold) this.hold();
            else response.end(JSON.stringify({ id: '1' }));
        });
    }
}

function file(request, response) {
    const path = join(stage, normalize(new URL(request.url, 'http://localhost').pathname));
    try {
        if (!statSync(path).isFile()) throw new Error('no file');
    } catch {
        response.writeHead(404).end();
        return;
    }
    response.setHeader('Content-Type', TYPES[extname(path)] ?? 'application/octet-stream');
    createReadStream(path).pipe(response);
}

/** The staged directory and the API, on a free port of the loopback, for one test. */
export async function serve(t) {
    const api = new Api();
    const http = createServer((request, response) => {
        if (request.url.startsWith('/api/')) api.answer(request, response);
        else file(request, response);
    });
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    t.after(() => {
        http.closeAllConnections();
        http.close();
    });
    return { url: `http://127.0.0.1:${http.address().port}/`, api };
}
