import { NAMES } from '../ebb-web/src/abi.js';
import { eventText, isCancel, isOfRegion } from './words.js';

const ENDS = {
    obligation_reserved: 'reserved', obligation_committed: 'committed', obligation_aborted: 'aborted',
    obligation_leaked: 'leaked',
};

/** Of a cancel event: those of its eight fields that it lacks, by the contract's names for them. */
export function missingFields(event) {
    const there = {
        task_id: event.taskId !== 0n || event.type === 'region_cancelled', /* that one may be the host's */
        region_id: event.regionId !== 0n,
        cancel_epoch: event.cancelEpoch > 0,
        cancel_phase: isName(event.cancelPhase),
        cancel_kind: isName(event.cancelKind),
        decision_seq: event.decisionSeq > 0n,
        host_turn_id: event.hostTurnId > 0n,
        microtask_batch_id: event.microtaskBatchId > 0n,
    };
    return Object.keys(there).filter((field) => !there[field]);
}

/** Not that of nothing, and not what a table says of a number that it does not have. */
function isName(text) {
    return typeof text === 'string' && !['', 'none', '?'].includes(text);
}

/** An obligation that was aborted has run its hook once, a committed one never; undefined if that is so. */
export function hookProblem(obligations, closure) {
    const due = ({ name }) => (['aborted', 'leaked'].includes(closure[name]) ? 1 : 0);
    const wrong = obligations.find((each) => each.aborts !== due(each));
    if (wrong === undefined) return undefined;
    const { name, aborts } = wrong;
    return `obligation ${name} is ${closure[name] ?? 'lost'}; its abort hook ran ${aborts} times`;
}

/**
 * What a run did, as `expect` of a fixture tells it, gathered from its events: each task's phases in order
 * and how it ended, how each obligation ended, the events of the cancel protocol and those that are watched.
 */
export class Story {
    phases = {};
    events = [];
    outcomes = {};
    closure = {};
    lines = []; /* of the script, for each of `events` */
    places = {}; /* for each of `phases`: the line and the event that led there */
    missing = []; /* cancel events without all of their fields */

    /** @param {string[]} watch the types of events that are listed besides those of the cancel protocol */
    constructor(abi, names, watch = []) {
        this.abi = abi;
        this.names = names;
        this.watch = new Set(watch);
    }

    take(event, line) {
        this.#listed(event, line);
        this.#fields(event, line);
        this.#phase(event, line);
        this.#obligation(event);
    }

    text(event) {
        return eventText(this.abi, this.names, event);
    }

    #listed(event, line) {
        if (!isCancel(event) && !this.watch.has(event.type)) return;
        this.events.push(this.text(event));
        this.lines.push(line);
    }

    #fields(event, line) {
        const fields = isCancel(event) ? missingFields(event) : [];
        if (fields.length === 0) return;
        this.missing.push({ line, seq: String(event.decisionSeq), event: this.text(event), fields });
    }

    #phase(event, line) {
        if (event.taskId === 0n || event.cancelPhase === '' || isOfRegion(event)) return;
        const task = this.names.task(event);
        const phases = this.phases[task] ??= [];
        if (phases.at(-1) !== event.cancelPhase) {
            phases.push(event.cancelPhase);
            (this.places[task] ??= []).push([line, this.text(event)]);
        }
        if (event.type !== 'completed' && event.type !== 'finalized') return;
        this.outcomes[task] = this.abi.name(NAMES.STATUS, event.value);
    }

    /** A leak is followed by an abort: it stays a leak. */
    #obligation(event) {
        const name = event.type in ENDS ? this.names.get('obligation', event.other) : undefined;
        if (name !== undefined && this.closure[name] !== 'leaked') this.closure[name] = ENDS[event.type];
    }
}
