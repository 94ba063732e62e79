import assert from 'node:assert/strict';
import test from 'node:test';

import { decode, encode } from '../src/utf8.js';

const texts = ['', 'plain', 'ä ö ü', '☃', '😀 𝒳', '\u0000\u007f\u0080\u07ff\u0800\uffff', '\ud800', 'a\udc00b'];

test('text is encoded and decoded as the platform does', () => {
    for (const text of texts) {
        const bytes = encode(text);
        assert.deepEqual([...bytes], [...new TextEncoder().encode(text)]);
        assert.equal(decode(bytes), new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
    }
});

test('bytes that are no UTF-8 become U+FFFD, and what follows is read', () => {
    for (const bytes of [[0x80], [0xc0, 0xaf], [0xe2, 0x98], [0xf8], [0xff], [0xe2, 0x28], [0xf4, 0x90, 0x80, 0x80]]) {
        const text = decode(Uint8Array.from([...bytes, 0x41]));
        assert.match(text, /^\ufffd+[\ufffd(]*A$/);
    }
});
