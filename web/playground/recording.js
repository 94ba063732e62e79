import { TraceReader } from '../ebb-web/index.js';

const KEPT = 16 << 20; /* bytes of each file: the beginning of a trace is a trace, its end is not */
const CHUNK = 1 << 16; /* bytes: the pieces that come are small, and there are many */

/** One file that grows, up to KEPT bytes. All of its chunks but the last are full. */
class File {
    #chunks = [];
    bytes = 0;
    full = false;

    append(piece) {
        this.full ||= this.bytes + piece.length > KEPT;
        if (this.full) return;
        for (let at = 0; at < piece.length;) at += this.#fill(piece.subarray(at));
    }

    /** Writes as much as fits into the last chunk. */
    #fill(bytes) {
        const used = this.bytes % CHUNK;
        if (used === 0) this.#chunks.push(new Uint8Array(CHUNK));
        const some = bytes.subarray(0, CHUNK - used);
        this.#chunks.at(-1).set(some, used);
        this.bytes += some.length;
        return some.length;
    }

    blob() {
        return new Blob(this.#chunks, { type: 'application/octet-stream' }).slice(0, this.bytes);
    }
}

/** The trace and the journal of one runtime: taken bit by bit, kept as files, and read as events. */
export class Recording {
    #rt;
    #reader;
    #crashed = false;
    trace = new File();
    journal = new File();

    constructor(rt) {
        this.#rt = rt;
        this.#reader = new TraceReader(rt);
    }

    /** The events since the last time. A runtime that crashed has saved what it had, which is taken once. */
    take() {
        const { crash } = this.#rt;
        if (crash !== undefined && this.#crashed) return [];
        this.#crashed = crash !== undefined;
        const bytes = crash?.trace ?? this.#rt.takeTrace({ flush: true });
        this.trace.append(bytes);
        this.journal.append(crash?.journal ?? this.#rt.takeJournal());
        return this.#reader.push(bytes);
    }

    /** Hands a file to the person, with all there is up to now. */
    save(what) {
        if (this.#rt.crash === undefined) this.journal.append(this.#rt.takeJournal({ flush: true }));
        const url = URL.createObjectURL(this[what].blob());
        const link = document.createElement('a');
        link.href = url;
        link.download = `playground.${what}`;
        link.click();
        setTimeout(() => URL.revokeObjectURL(url), 60000);
    }
}
