/** Reads and writes WebAssembly modules, as much of them as the tests need. */

const LETTERS = { 0x7f: 'i', 0x7e: 'I' };
const CODES = { i: 0x7f, I: 0x7e };
const SECTION = { TYPE: 1, IMPORT: 2, FUNCTION: 3, MEMORY: 5, EXPORT: 7, CODE: 10 };
const UNREACHABLE = 0x00;
const NOP = 0x01;
const END = 0x0b;

/** A file beside the tests' folder, wherever they run. */
export async function packageFile(name) {
    const url = new URL(`../${name}`, import.meta.url);
    if (url.protocol === 'file:') {
        const { readFile } = await import('node:fs/promises');
        return new Uint8Array(await readFile(url));
    }
    return new Uint8Array(await (await fetch(url)).arrayBuffer());
}

/* ---- reading ------------------------------------------------------------------------------------------- */

class Cursor {
    constructor(bytes, at = 0) {
        this.bytes = bytes;
        this.at = at;
    }

    byte() {
        return this.bytes[this.at++];
    }

    u32() {
        let value = 0;
        for (let shift = 0; ; shift += 7) {
            const byte = this.byte();
            value |= (byte & 0x7f) << shift;
            if (byte < 0x80) return value >>> 0;
        }
    }

    take(n) {
        this.at += n;
        return this.bytes.subarray(this.at - n, this.at);
    }

    name() {
        return new TextDecoder().decode(this.take(this.u32()));
    }

    list(item) {
        return Array.from({ length: this.u32() }, item);
    }
}

function sections(bytes) {
    const found = new Map();
    const c = new Cursor(bytes, 8);
    while (c.at < bytes.length) {
        const id = c.byte();
        const size = c.u32();
        found.set(id, c.at);
        c.at += size;
    }
    return found;
}

function typesAt(c) {
    const letters = () => c.list(() => LETTERS[c.byte()] ?? '?').join('');
    return c.list(() => {
        c.byte();
        return letters() + (letters() || 'v');
    });
}

function importAt(c, types) {
    const [from, name, kind] = [c.name(), c.name(), c.byte()];
    return { from, name, type: kind === 0 ? types[c.u32()] : '?' };
}

/**
 * The types of what a module imports and exports, a letter a parameter and one for the result; and where the
 * body of each exported function stands.
 */
export function read(bytes) {
    const at = sections(bytes);
    const cursor = (id) => new Cursor(bytes, at.get(id));
    const types = typesAt(cursor(SECTION.TYPE));
    const c = cursor(SECTION.IMPORT);
    const imports = c.list(() => importAt(c, types));
    const f = cursor(SECTION.FUNCTION);
    const functions = [...imports.map(({ type }) => type), ...f.list(() => types[f.u32()])];
    const e = cursor(SECTION.EXPORT);
    const exports = e.list(() => ({ name: e.name(), kind: e.byte(), index: e.u32() }));
    const b = cursor(SECTION.CODE);
    const bodies = b.list(() => ({ size: b.u32(), start: b.at, skipped: b.take(bodyEnd(b)) }));
    return {
        imports: Object.fromEntries(imports.map(({ from, name, type }) => [`${from}.${name}`, type])),
        exports: Object.fromEntries(exports.filter(({ kind }) => kind === 0)
            .map(({ name, index }) => [name, functions[index]])),
        others: exports.filter(({ kind }) => kind !== 0).map(({ name }) => name),
        body: (name) => bodies[exports.find((each) => each.name === name).index - imports.length],
    };
}

/* Called with the cursor behind a body's size: that size is the number before. */
function bodyEnd(c) {
    const before = new Cursor(c.bytes, c.at);
    do before.at--; while (c.bytes[before.at - 1] >= 0x80);
    return before.u32();
}

/** A copy of a module in which some exported functions do nothing but trap. */
export function trapping(bytes, names) {
    const copy = bytes.slice();
    const module = read(bytes);
    for (const name of names) {
        const { start, size } = module.body(name);
        copy.fill(NOP, start, start + size);
        copy.set([0, UNREACHABLE], start); /* no locals */
        copy[start + size - 1] = END;
    }
    return new WebAssembly.Module(copy);
}

/* ---- writing ------------------------------------------------------------------------------------------- */

function u32(value) {
    const out = [];
    for (let left = value >>> 0; ; left >>>= 7) {
        if (left < 0x80) return [...out, left];
        out.push((left & 0x7f) | 0x80);
    }
}

const text = (string) => [...u32(string.length), ...new TextEncoder().encode(string)];
const vector = (items) => [...u32(items.length), ...items.flat()];
const section = (id, bytes) => [id, ...u32(bytes.length), ...bytes];

function functionType(letters) {
    const codes = [...letters].map((letter) => CODES[letter]);
    return [0x60, ...vector(codes.slice(0, -1)),
        ...vector(codes.slice(-1).filter((code) => code !== undefined))];
}

/**
 * A module by its description. An export is its type and what it returns, a number, or undefined: it traps.
 * @param {{ imports?: [string, string, string][], exports?: Record<string, [string, number?]>,
 *     memory?: boolean }} what
 */
export function moduleOf({ imports = [], exports = {}, memory = true }) {
    const functions = Object.entries(exports);
    const types = [...imports.map(([, , type]) => type), ...functions.map(([, [type]]) => type)];
    const bodies = functions.map(([, [type, value]]) => {
        const code = value === undefined ? [UNREACHABLE] : constant(type.at(-1), value);
        return [...u32(code.length + 2), 0, ...code, END];
    });
    const exported = functions.map(([name], i) => [...text(name), 0, ...u32(imports.length + i)]);
    if (memory) exported.push([...text('memory'), 2, 0]);
    return new WebAssembly.Module(new Uint8Array([
        0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
        ...section(SECTION.TYPE, vector(types.map(functionType))),
        ...section(SECTION.IMPORT,
            vector(imports.map(([from, name], i) => [...text(from), ...text(name), 0, ...u32(i)]))),
        ...section(SECTION.FUNCTION, vector(functions.map((_, i) => u32(imports.length + i)))),
        ...(memory ? section(SECTION.MEMORY, vector([[0, 1]])) : []),
        ...section(SECTION.EXPORT, vector(exported)),
        ...section(SECTION.CODE, vector(bodies)),
    ]));
}

/* i32.const or i64.const of 0 to 63; nothing for v. */
function constant(letter, value) {
    if (letter === 'v') return [];
    return [letter === 'I' ? 0x42 : 0x41, value];
}
