import { NAMES } from '../ebb-web/src/abi.js';

const BYTES = 48;

/**
 * Why a witness may not follow an earlier one; undefined if it may. The contract's rule in JavaScript, so
 * that a module whose own check is broken does not get away with it.
 */
export function whyNot(earlier, later) {
    if (later.task !== earlier.task) return 'it is of another task';
    if (later.region !== earlier.region) return 'it is of another region';
    const moved = (part, how) => `its ${part} ${how} from ${earlier[part]} to ${later[part]}`;
    for (const part of ['epoch', 'phase', 'severity']) {
        if (later[part] < earlier[part]) return moved(part, 'went back');
    }
    if (earlier.epoch === 0) return undefined; /* the first request sets the budget */
    for (const part of ['deadline', 'polls']) if (later[part] > earlier[part]) return moved(part, 'grew');
    return later.priority < earlier.priority ? moved('priority', 'fell') : undefined;
}

/** The witness of a task as the scratch has it, with its bytes; undefined if the task is gone. */
function witnessOf(abi, task) {
    if (abi.call.witness(task) < 0) return undefined;
    const bytes = abi.bytes(abi.at, BYTES).slice();
    const w = abi.words();
    const seen = { bytes, task: w.u64(), region: w.u64(), deadline: w.u64(), epoch: w.u32(), phase: w.u32() };
    return Object.assign(seen, { severity: w.u32(), kind: w.u32(), polls: w.u32(), priority: w.u32() });
}

/** Writes a witness of the package as the module reads one. */
function write(abi, at, { task, region, epoch, phase, severity, kind, budget }) {
    const { view } = abi;
    [task, region, budget.deadline].forEach((word, i) => view.setBigUint64(at + 8 * i, word, true));
    const numbers = [epoch, numberOf(abi, NAMES.PHASE, phase), numberOf(abi, NAMES.SEVERITY, severity),
        numberOf(abi, NAMES.CANCEL_KIND, kind), budget.polls, budget.priority];
    numbers.forEach((word, i) => view.setUint32(at + 24 + 4 * i, word, true));
}

/** Which number of a table has that name; no table has more than sixteen. */
function numberOf(abi, table, name) {
    return Array.from({ length: 16 }, (_, i) => abi.name(table, i)).indexOf(name);
}

/** What the module says of the two; undefined if the later one may follow. */
function refusal(abi, earlier, later) {
    abi.bytes(abi.at, BYTES).set(earlier.bytes);
    abi.bytes(abi.at + BYTES, BYTES).set(later.bytes);
    const status = abi.call.witness_check();
    return status === 0 ? undefined : abi.name(NAMES.STATUS_TEXT, status);
}

/** The last witness of each task: what one shows of its cancellation may only follow what it showed. */
export class Witnesses {
    #last = new Map();
    violations = [];

    constructor(abi) {
        this.abi = abi;
    }

    /** What the module says of two witnesses of the package, `task.witness()`: the name of a status. */
    verdict(earlier, later) {
        [earlier, later].forEach((seen, i) => write(this.abi, this.abi.at + i * BYTES, seen));
        return this.abi.name(NAMES.STATUS, this.abi.call.witness_check());
    }

    look(task, name, line) {
        const now = witnessOf(this.abi, task);
        if (now === undefined) return;
        const before = this.#last.get(task);
        this.#last.set(task, now);
        if (before !== undefined) this.#judge(before, now, name, line);
    }

    #judge(before, now, task, line) {
        const ours = whyNot(before, now);
        const theirs = refusal(this.abi, before, now);
        if (ours === undefined && theirs === undefined) return;
        const text = `${ours ?? 'nothing is wrong with it'}; the module says: ${theirs ?? 'it may follow'}`;
        this.violations.push({ line, task, text });
    }
}
