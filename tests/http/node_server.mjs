// Node's own servers, for tests of our client. Says "port N", and then what happens to its streams.
//
//   node node_server.mjs h2 [CERT KEY]      HTTP/2, in plain text by prior knowledge; or over TLS
//   node node_server.mjs https CERT KEY     HTTP/1.1 over TLS
//
//   /hello          "hello\n"
//   /big?n=BYTES    so many bytes, each an "n"
//   /echo           the body, piece by piece, and its length as the trailer x-sum
//   /slow           the length of the body, which it takes slowly
//   /refuse /break  resets the stream: REFUSED_STREAM, INTERNAL_ERROR
//   /hints          103 and then 200
//   /hang           says "begin", and "end CODE" when the stream is reset
//   /mark           says "mark"
//   /leave          answers, and says GOAWAY
//   /sessions       how many there were so far
import { readFileSync } from 'node:fs';
import http2 from 'node:http2';
import https from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';

const [kind, cert, key] = process.argv.slice(2);
const tls = cert === undefined ? {} : { cert: readFileSync(cert), key: readFileSync(key) };
let sessions = 0;

async function slow(stream) {
    let n = 0;
    for await (const piece of stream) {
        n += piece.length;
        await sleep(1);
    }
    stream.respond({ ':status': 200 });
    stream.end(`${n}\n`);
}

function echo(stream) {
    let n = 0;
    stream.respond({ ':status': 200 }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': String(n) }));
    stream.on('data', (piece) => { n += piece.length; });
    stream.pipe(stream);
}

function big(stream, url) {
    let left = Number(url.searchParams.get('n'));
    stream.respond({ ':status': 200 });
    const more = () => {
        while (left > 0) {
            const n = Math.min(left, 100000);
            left -= n;
            if (!stream.write(Buffer.alloc(n, 'n'))) return;
        }
        stream.end();
    };
    stream.on('drain', more);
    more();
}

const answers = {
    '/hello': (stream) => { stream.respond({ ':status': 200 }); stream.end('hello\n'); },
    '/sessions': (stream) => { stream.respond({ ':status': 200 }); stream.end(`${sessions}\n`); },
    '/refuse': (stream) => stream.close(http2.constants.NGHTTP2_REFUSED_STREAM),
    '/break': (stream) => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR),
    '/hints': (stream) => {
        stream.additionalHeaders({ ':status': 103, link: '</a>; rel=preload' });
        stream.respond({ ':status': 200 });
        stream.end('hinted\n');
    },
    '/hang': (stream) => {
        console.log('begin');
        stream.on('close', () => console.log(`end ${stream.rstCode}`));
    },
    '/mark': (stream) => {
        console.log('mark');
        stream.respond({ ':status': 200 }, { endStream: true });
    },
    '/leave': (stream) => {
        stream.respond({ ':status': 200 });
        stream.end('bye\n');
        stream.session.close();
    },
    '/big': big,
    '/echo': echo,
    '/slow': slow,
};

function on_stream(stream, headers) {
    const url = new URL(headers[':path'], 'http://localhost');
    stream.on('error', () => {});
    const answer = answers[url.pathname];
    if (answer !== undefined) {
        answer(stream, url);
        return;
    }
    stream.respond({ ':status': 404 }, { endStream: true });
}

let server;
if (kind === 'https') server = https.createServer(tls, (request, response) => request.pipe(response));
else if (cert === undefined) server = http2.createServer({ settings: { maxConcurrentStreams: 10 } });
else server = http2.createSecureServer(tls);
server.on('session', (session) => {
    sessions++;
    session.on('error', () => {});
});
server.on('stream', on_stream);
server.listen(0, '127.0.0.1', () => console.log(`port ${server.address().port}`));
