import { NAMES } from './abi.js';
import { EbbError } from './errors.js';
import { decode } from './utf8.js';

const HEADER = 64;
const BLOCK = 32;
const RECORD = 32;
const TIME = 1;
const TURN = 2;
const GAP = 3;
const TEXT = 4;

/** Numbers of strings above the value: a site above 8 bits; or a site above 12 bits and a name above 22. */
const WITH_SITE = new Set(['region_opened', 'task_spawned', 'obligation_reserved', 'finalizer_added']);
const WITH_BOTH = new Set(['named', 'waiting', 'operation_begun', 'future_made', 'connection_opened',
    'process_started']);

function split(type, value) {
    if (WITH_SITE.has(type)) return { value: value & 0xff, site: value >>> 8, name: 0 };
    if (WITH_BOTH.has(type)) return { value: value & 0xfff, site: value >>> 12 & 0x3ff, name: value >>> 22 };
    return { value, site: 0, name: 0 };
}

/** Events that stand for a region: their phase is a region's state. */
const OF_REGIONS = new Set(['region_opened', 'region_closing', 'region_cancelled', 'region_forced',
    'region_draining', 'region_finalizing', 'region_closed', 'region_joined', 'chain_truncated', 'region_stopping']);

/** Events whose value is a status. */
const OF_STATUS = new Set(['region_closed', 'region_joined', 'finalized', 'completed', 'refused', 'task_joined',
    'finalizer_done', 'poll_ended']);

function damaged(offset, expected) {
    return new EbbError('EBB_ERR_CORRUPT', `trace, offset ${offset}: expected ${expected}`);
}

/**
 * Reads a trace as it is taken from a runtime, piece by piece: each piece has whole blocks, the first one the
 * file's header too. Checksums are for those who read files (`ebb trace verify`); these bytes come from memory.
 */
export class TraceReader {
    #abi;
    #offset = 0;
    #seq = 0n;
    #time = 0n;
    #turn = 0n;
    #batch = 0n;
    #said = {}; /* the event that has the last text, and that text's bytes */
    #strings = new Map([[0, '']]); /* by number */

    /** @param {{ abi: import('./abi.js').Abi }} runtime for the names of what stands in events */
    constructor(runtime) {
        this.#abi = runtime.abi;
    }

    /** @param {Uint8Array} bytes @returns {object[]} the events in them, in order */
    push(bytes) {
        const events = [];
        const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
        let at = this.#offset === 0 && bytes.length > 0 ? this.#header(view) : 0;
        while (at < bytes.length) at = this.#block(view, at, events);
        this.#offset += bytes.length;
        return events;
    }

    #header(view) {
        if (view.byteLength < HEADER || view.getBigUint64(0) !== 0x4542425452414345n) { /* EBBTRACE */
            throw damaged(0, 'the header of a trace');
        }
        return HEADER;
    }

    #block(view, start, events) {
        const left = view.byteLength - start;
        if (left < BLOCK || view.getUint32(start) !== 0x45424c4b) { /* EBLK */
            throw damaged(this.#offset + start, 'a block');
        }
        const n = view.getUint32(start + 4, true);
        if (left < BLOCK + n * RECORD) throw damaged(this.#offset + start, `a block of ${n} records`);
        this.#seq = view.getBigUint64(start + 8, true);
        for (let i = 0; i < n; i++) this.#record(view, start + BLOCK + i * RECORD, events);
        return start + BLOCK + n * RECORD;
    }

    #record(view, at, events) {
        const type = view.getUint8(at);
        const other = view.getBigUint64(at + 24, true);
        const seq = this.#seq;
        this.#seq += type === GAP ? 1n + other : 1n;
        if (type === TIME) this.#time = other;
        if (type === TURN) {
            this.#turn = view.getBigUint64(at + 8, true);
            this.#batch = view.getBigUint64(at + 16, true);
        }
        if (type === TEXT) this.#text(events.at(-1), view, at);
        else if (type !== TIME && type !== TURN) events.push(this.#event(view, at, type, seq, other));
    }

    #event(view, at, type, seq, other) {
        const abi = this.#abi;
        const name = abi.name(NAMES.EVENT, type) ?? `event ${type}`;
        const epoch = view.getUint8(at + 3);
        const phase = view.getUint8(at + 1);
        const kind = view.getUint8(at + 2);
        const names = OF_REGIONS.has(name) ? NAMES.REGION_STATE : NAMES.PHASE;
        const parts = split(name, view.getUint32(at + 4, true));
        return {
            type: name,
            taskId: view.getBigUint64(at + 8, true),
            regionId: view.getBigUint64(at + 16, true),
            cancelEpoch: epoch & 15,
            cancelPhase: phase === 0 ? '' : abi.name(names, phase),
            cancelKind: kind === 0 ? '' : abi.name(NAMES.CANCEL_KIND, kind),
            decisionSeq: seq,
            hostTurnId: this.#turn,
            microtaskBatchId: this.#batch,
            severity: epoch >> 4 === 0 ? '' : abi.name(NAMES.SEVERITY, epoch >> 4),
            time: this.#time,
            value: parts.value,
            name: this.#strings.get(parts.name) ?? '',
            site: this.#strings.get(parts.site) ?? '',
            status: OF_STATUS.has(name) ? abi.name(NAMES.STATUS, view.getInt32(at + 4, true)) : '',
            other,
            text: '',
        };
    }

    /**
     * A text belongs to the event before it; one whose event was taken with the piece before has nowhere to go. It
     * comes in pieces that may end inside a character.
     */
    #text(event, view, at) {
        if (event === undefined) return;
        const n = Math.min(24, view.getUint32(at + 4, true));
        if (this.#said.event !== event) this.#said = { event, bytes: [] };
        this.#said.bytes.push(...new Uint8Array(view.buffer, view.byteOffset + at + 8, n));
        event.text = decode(this.#said.bytes);
        if (event.type === 'string') this.#strings.set(event.value, event.text);
    }
}
