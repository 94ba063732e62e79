// The bench's HTTP server, done the way Node does it: node:http2 by its streams, which cost less than its
// compatibility with requests and responses. It prints its port. Paths as in bench/http/floor.c.

import { createServer } from 'node:http2';

const SLOW_MS = 60_000;
let begun = 0;
let reset = 0;

const say = (stream, text) => {
  stream.respond({ ':status': 200, 'content-type': 'text/plain', 'content-length': text.length });
  stream.end(text);
};

const slow = (stream) => {
  begun++;
  const timer = setTimeout(say, SLOW_MS, stream, 'ok');
  stream.once('close', () => {
    if (stream.aborted) reset++;
    clearTimeout(timer);
  });
};

const server = createServer();
server.on('stream', (stream, headers) => {
  stream.on('error', () => {}); // a stream that is reset is no news here
  switch (headers[':path']) {
    case '/': return say(stream, 'ok');
    case '/slow': return slow(stream);
    default: return say(stream, `${begun} ${reset}\n`);
  }
});
server.on('sessionError', () => {});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
