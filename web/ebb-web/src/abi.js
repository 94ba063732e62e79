/**
 * The module's ABI as this package knows it: web/wasm/abi.h in JavaScript. A letter a parameter, then the result:
 * i is 32 bits (a Number), I is 64 bits (a BigInt, or it throws), v is nothing.
 */
import { EbbError } from './errors.js';
import { decode, encode } from './utf8.js';

export const ABI_VERSION = 2;

export const EXPORTS = {
    abi_version: 'i', scratch: 'i', allocate: 'ii', release: 'iiv', start: 'iIiiii',
    advance: 'Iv', turn: 'IIv', pump: 'ii', next_due: 'I', runnable: 'i',
    take_trace: 'iv', take_journal: 'iv', dump: 'v', stats: 'v', name: 'iii', id_status: 'Ii',
    root: 'I', region_open: 'IIiIiiiI', region_join: 'IIv', region_close: 'IIv', region_cancel: 'IIiv',
    region_cancel_within: 'IIiIiv', region_force: 'IIv', region_info: 'Ii', root_message: 'Ii',
    region_work: 'Iiii', cause_chain: 'Ii', region_reserve: 'IIiiiI', region_defer: 'IIiii',
    spawn: 'IIIiiiiI', wake: 'IIi', task_cancel: 'IIiv', task_force: 'Iv', checkpoint: 'Ii', mask: 'Ii',
    unmask: 'Ii', signal: 'Ii', task_info: 'Ii', witness: 'Ii', witness_check: 'i',
    reserve: 'IiiiI', commit: 'IIi', abort: 'IIi', defer: 'Iiii', timer_arm: 'III', timer_disarm: 'Ii',
};

export const IMPORTS = { poll: 'iii', finalize: 'iiIi', ended: 'iiv', aborted: 'iv', closed: 'iiiiv', bytes: 'iiiv' };

export const STATUS = { OK: 0, PENDING: 1, CANCELLED: -1, FAULTED: -2, FAILED: -3, STALE: -12, CLOSED: -14 };
export const SIGNAL = { CANCEL: 1, STOP: 2, OVERDUE: 4 };
export const NAMES = {
    STATUS: 0, STATUS_TEXT: 1, CANCEL_KIND: 2, EVENT: 3, PHASE: 4, REGION_STATE: 5, SEVERITY: 6, LANE: 7,
    OBLIGATION: 8,
};
const CANCEL_KINDS = 10;
const OBLIGATIONS = 6;

const SITES = 4096;
const TOO_MANY = '(one name too many)';
const MESSAGE = 64; /* characters of a message that the kernel is given: it keeps 47 bytes */

export function u64(value) {
    return BigInt.asUintN(64, value);
}

function mismatch(text) {
    return new EbbError('EBB_ERR_ABI', `the wasm module does not fit this package: ${text}`);
}

function checkExports(exports) {
    if (typeof exports.abi_version !== 'function') throw mismatch('it has no abi_version; expected one of Ebb');
    const version = exports.abi_version();
    if (version !== ABI_VERSION) throw mismatch(`it has ABI ${version}; expected ABI ${ABI_VERSION}`);
    for (const [name, types] of Object.entries(EXPORTS)) {
        const found = exports[name];
        if (typeof found !== 'function') throw mismatch(`it has no function ${name}`);
        if (found.length !== types.length - 1) {
            throw mismatch(`${name} takes ${found.length} arguments; expected ${types.length - 1}`);
        }
    }
    if (!(exports.memory instanceof WebAssembly.Memory)) throw mismatch('it has no memory');
}

function checkImports(module) {
    if (!(module instanceof WebAssembly.Module)) {
        throw new TypeError(`module: expected a WebAssembly.Module; found ${Object.prototype.toString.call(module)}`
            + `${module === undefined ? " (ebb-web/core has none of its own; compile ebb-web/ebb.wasm, or import 'ebb-web')" : ''}`);
    }
    for (const { module: from, name } of WebAssembly.Module.imports(module)) {
        if (from !== 'ebb' || !Object.hasOwn(IMPORTS, name)) throw mismatch(`it asks for ${from}.${name}`);
    }
}

/**
 * One instance of the module. Its exports are called as `abi.call.NAME(...)`. If one traps, `trapped` is called with it,
 * which may still take what was recorded; after that nothing in the instance can be trusted, and every call throws.
 */
export class Abi {
    #exports;
    #dead;
    #sites = new Map();
    #names = new Map();
    #view;

    /**
     * @param {WebAssembly.Module} module
     * @param {Record<string, Function>} callbacks one for each of IMPORTS; they do not throw
     * @param {(error: Error) => Error} trapped gives what to throw from then on
     */
    constructor(module, callbacks, trapped) {
        checkImports(module);
        const instance = instantiate(module, callbacks);
        checkExports(instance.exports);
        this.#exports = instance.exports;
        this.#view = new DataView(this.#exports.memory.buffer);
        this.call = Object.freeze(Object.fromEntries(
            Object.keys(instance.exports).filter((name) => typeof instance.exports[name] === 'function')
                .map((name) => [name, this.#guarded(instance.exports[name], trapped)])));
        this.at = this.call.scratch();
    }

    /** Arguments of the wrong type are the caller's mistake; all else that comes out of a module is a trap. */
    #guarded(fn, trapped) {
        return (a, b, c, d, e, f, g) => {
            if (this.#dead !== undefined) throw this.#dead;
            try {
                return fn(a, b, c, d, e, f, g);
            } catch (error) {
                if (!(error instanceof WebAssembly.RuntimeError || error instanceof RangeError)) throw error;
                this.#dead ??= trapped(error);
                throw this.#dead;
            }
        };
    }

    /** A view of the memory as it is now: one that was made before it grew is dead. */
    get view() {
        const { buffer } = this.#exports.memory;
        if (this.#view.buffer !== buffer) this.#view = new DataView(buffer);
        return this.#view;
    }

    /** Addresses come as signed numbers. */
    bytes(at, n) {
        return new Uint8Array(this.#exports.memory.buffer, at >>> 0, n);
    }

    get memoryBytes() {
        return this.#exports.memory.buffer.byteLength;
    }

    /** The text at an address, up to its 0; at most `most` bytes of it. */
    text(at, most = 1024) {
        if (at === 0) return undefined;
        const bytes = this.bytes(at, Math.min(most, this.memoryBytes - (at >>> 0)));
        const end = bytes.indexOf(0);
        return decode(end < 0 ? bytes : bytes.subarray(0, end));
    }

    /** Writes a message where the next call looks for one; the kernel cuts it to what it keeps. */
    say(message) {
        const bytes = encode(String(message ?? '').slice(0, MESSAGE));
        this.bytes(this.at, bytes.length).set(bytes);
        this.view.setUint8(this.at + bytes.length, 0);
    }

    /** The address of a site's text, which has to stay. The same text is kept once, and so many of them. */
    site(text) {
        const known = this.#sites.get(text);
        if (known !== undefined) return known;
        if (this.#sites.size >= SITES && text !== TOO_MANY) return this.site(TOO_MANY);
        const bytes = encode(`${text}\0`);
        const at = this.call.allocate(bytes.length);
        if (at === 0) return 0;
        this.bytes(at, bytes.length).set(bytes);
        this.#sites.set(text, at);
        return at;
    }

    /** The name of a number. Not guarded: the tables of a dead instance can still be read, and so can its trace. */
    name(table, value) {
        const key = table * 0x10000 + (value & 0xffff);
        if (!this.#names.has(key)) this.#names.set(key, this.text(this.#exports.name(table, value)));
        return this.#names.get(key);
    }

    #number(table, most, what, name) {
        for (let i = 1; i <= most; i++) if (this.name(table, i) === name) return i;
        const all = Array.from({ length: most }, (_, i) => this.name(table, i + 1));
        throw new TypeError(`there is no ${what} ${String(name)}; expected one of ${all.join(', ')}`);
    }

    cancelKind(name) {
        return this.#number(NAMES.CANCEL_KIND, CANCEL_KINDS - 1, 'cancel kind', name); /* PARENT is the kernel's */
    }

    obligationKind(name) {
        return this.#number(NAMES.OBLIGATION, OBLIGATIONS, 'kind of obligation', name);
    }

    /** The error of a status below 0. */
    error(status, what, hint = '') {
        return new EbbError(this.name(NAMES.STATUS, status), `${what}: ${this.name(NAMES.STATUS_TEXT, status)}${hint}`);
    }

    /** Reads the scratch from its beginning. */
    words() {
        return new Words(this.view, this.at);
    }
}

/** An engine has room for so many memories in a page. */
function instantiate(module, callbacks) {
    try {
        return new WebAssembly.Instance(module, { ebb: callbacks });
    } catch (cause) {
        if (!(cause instanceof RangeError)) throw cause;
        throw new EbbError('EBB_ERR_NOMEM', `new Runtime: no memory for another instance: ${cause.message}`, { cause });
    }
}

/** A cursor over what a call has filled. */
class Words {
    constructor(view, at) {
        this.view = view;
        this.at = at;
    }

    u64() {
        this.at += 8;
        return this.view.getBigUint64(this.at - 8, true);
    }

    i32() {
        this.at += 4;
        return this.view.getInt32(this.at - 4, true);
    }

    u32() {
        return this.i32() >>> 0;
    }

    /** The 48 bytes of a reason's message. */
    message() {
        const bytes = new Uint8Array(this.view.buffer, this.at, 48);
        this.at += 48;
        const end = bytes.indexOf(0);
        return decode(bytes.subarray(0, end < 0 ? 48 : end));
    }
}
