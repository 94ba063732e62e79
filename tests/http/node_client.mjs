// Node's own HTTP/2 client, for tests: what a well-behaved peer of another making does.
//
//   node node_client.mjs get URL            {"status", "headers", "body", "trailers"} as JSON
//   node node_client.mjs echo URL BYTES     POSTs as many random bytes; {"sent", "received"}: their SHA-256
//   node node_client.mjs trailers URL       POSTs a body with the trailer x-sum; as get
//   node node_client.mjs cancel URL         asks, resets the stream when it hears "go" on stdin; {"code"}
//   node node_client.mjs download URL       says "reading" after the first bytes, and then reads no more
//   node node_client.mjs upload URL         sends a first piece of a body, says "sent", and then no more
import { createHash, randomBytes } from 'node:crypto';
import http2 from 'node:http2';
import { Readable } from 'node:stream';

const [what, url, count] = process.argv.slice(2);
const { origin, pathname, search } = new URL(url);
const session = http2.connect(origin, { rejectUnauthorized: false });
session.on('error', fail);

function fail(error) {
    console.error(String(error));
    process.exit(1);
}

function request(method, options) {
    const stream = session.request({ ':method': method, ':path': pathname + search }, options);
    stream.on('error', fail);
    return stream;
}

function end(result) {
    console.log(JSON.stringify(result));
    session.close();
}

function answer(stream) {
    const result = { body: '', trailers: {} };
    stream.setEncoding('latin1');
    stream.on('response', (headers) => Object.assign(result, { status: headers[':status'], headers }));
    stream.on('trailers', (trailers) => { result.trailers = trailers; });
    stream.on('data', (piece) => { result.body += piece; });
    stream.on('end', () => end(result));
}

function* pieces(bytes) {
    for (let at = 0; at < bytes.length; at += 65536) yield bytes.subarray(at, at + 65536);
}

function echo() {
    const bytes = randomBytes(Number(count));
    const received = createHash('sha256');
    const stream = request('POST');
    stream.on('data', (piece) => received.update(piece));
    stream.on('end', () => end({
        sent: createHash('sha256').update(bytes).digest('hex'), received: received.digest('hex') }));
    Readable.from(pieces(bytes)).pipe(stream);
}

function trailers() {
    const stream = request('POST', { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': 'from node' }));
    answer(stream);
    stream.end('a body');
}

function cancel() {
    const stream = request('GET');
    process.stdin.once('data', () => {
        stream.close(http2.constants.NGHTTP2_CANCEL);
        process.stdin.destroy();
    });
    stream.on('close', () => end({ code: stream.rstCode }));
    console.log('asked');
}

function download() {
    const stream = request('GET');
    stream.once('data', () => {
        stream.pause();
        console.log('reading');
    });
}

function upload() {
    request('POST').write(Buffer.alloc(20000), () => console.log('sent'));
}

({ get: () => answer(request('GET')), echo, trailers, cancel, download, upload })[what]();
