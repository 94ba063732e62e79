/** UTF-8, without TextEncoder and TextDecoder: jsdom has neither. */

const REPLACEMENT = 0xfffd;

/** @returns {Uint8Array} a lone surrogate becomes U+FFFD */
export function encode(text) {
    const out = [];
    for (const character of text) {
        const code = character.codePointAt(0);
        push(out, code >= 0xd800 && code <= 0xdfff ? REPLACEMENT : code);
    }
    return Uint8Array.from(out);
}

function push(out, code) {
    if (code < 0x80) out.push(code);
    else if (code < 0x800) out.push(0xc0 | code >> 6, tail(code));
    else if (code < 0x10000) out.push(0xe0 | code >> 12, tail(code >> 6), tail(code));
    else out.push(0xf0 | code >> 18, tail(code >> 12), tail(code >> 6), tail(code));
}

function tail(bits) {
    return 0x80 | bits & 0x3f;
}

const LEAST = [0, 0, 0x80, 0x800, 0x10000]; /* code point of a sequence of so many bytes */

/** Bytes as text. A sequence that is not UTF-8 becomes U+FFFD. */
export function decode(bytes) {
    let text = '';
    for (let at = 0; at < bytes.length;) {
        const { code, size } = sequence(bytes, at);
        text += String.fromCodePoint(code);
        at += size;
    }
    return text;
}

function sequence(bytes, at) {
    const lead = bytes[at];
    if (lead < 0x80) return { code: lead, size: 1 };
    const size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
    if (size === 1 || lead > 0xf4) return { code: REPLACEMENT, size: 1 };
    let code = lead & 0x7f >> size;
    for (let i = 1; i < size; i++) {
        if ((bytes[at + i] & 0xc0) !== 0x80) return { code: REPLACEMENT, size: i };
        code = code << 6 | bytes[at + i] & 0x3f;
    }
    const valid = code >= LEAST[size] && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
    return { code: valid ? code : REPLACEMENT, size };
}
