/*
 * The four gates: what a run did against its fixture, against another host, and against itself. Each gives
 * the ways in which it fails, none if it holds.
 */
import { isCancelType } from './words.js';

/**
 * @typedef {object} Difference
 * @property {number} [line] of the script, from 1; undefined if no line is known
 * @property {string} what
 * @property {[string, string][]} sides who had what
 */

/** What does not depend on the order in which the scheduler chose. */
const ENDS = ['phases', 'outcomes', 'closure', 'results', 'chains'];

/** What two hosts are compared by; the fingerprint too. */
const PARITY = ['phases', 'outcomes', 'closure'];

function text(value) {
    if (value === undefined) return 'nothing';
    return typeof value === 'string' ? value : JSON.stringify(value);
}

function difference(line, what, [left, right], a, b) {
    return { line, what, sides: [[left, text(a)], [right, text(b)]] };
}

/** Where two arrays part, from 0; undefined if they are the same. */
function parting(a, b, same = (x, y) => x === y) {
    const n = Math.max(a.length, b.length);
    for (let i = 0; i < n; i++) if (i >= a.length || i >= b.length || !same(a[i], b[i])) return i;
    return undefined;
}

/* ---- parts --------------------------------------------------------------------------------------------- */

/** The line and the event of a task's i-th phase, as whichever side knows it. */
function placeOf(a, b, task, i) {
    const places = [b, a].map((side) => side.places?.[task]).find((each) => each !== undefined);
    return places?.at(i) ?? [];
}

function phases(a, b, sides) {
    return membersOf(a, b, 'phases').flatMap((task) => {
        const [x, y] = [a, b].map((side) => side.actual.phases[task] ?? []);
        const i = parting(x, y);
        if (i === undefined) return [];
        const [line, event] = i < y.length ? placeOf(a, b, task, i) : []; /* else it never came there */
        const at = event === undefined ? '' : ` at ${event}`;
        return [difference(line, `phase ${i + 1} of task ${task}${at}`, sides, x[i], y[i])];
    });
}

function membersOf(a, b, part) {
    return [...new Set([a, b].flatMap((side) => Object.keys(side.actual[part] ?? {})))];
}

/** Results and chains have theirs as keys; an outcome that there is came with the last phase. */
function lineOf(a, b, part, key) {
    if (part !== 'outcomes') return /^[0-9]+$/.test(key) ? Number(key) : undefined;
    return b.actual.outcomes[key] === undefined ? undefined : placeOf(a, b, key, -1)[0];
}

/** Each member of two objects; one that is missing on either side differs. */
function members(part, a, b, sides) {
    return membersOf(a, b, part).flatMap((key) => {
        const [x, y] = [a, b].map((side) => side.actual[part]?.[key]);
        if (text(x) === text(y)) return [];
        return [difference(lineOf(a, b, part, key), `${part}.${key}`, sides, x, y)];
    });
}

/** An expected event may leave out the end of what there is to say: "cancel_acked(worker)". */
function eventMatches(expected, actual) {
    return actual.startsWith(expected) && ['', ' ', '('].includes(actual.charAt(expected.length));
}

function events(a, b, sides, same) {
    const [x, y] = [a, b].map((side) => side.actual.events);
    const i = parting(x, y, same);
    if (i === undefined) return [];
    const lines = b.lines ?? a.lines; /* one that never came has none */
    return [difference(lines?.[i], `event ${i + 1}`, sides, x[i], y[i])];
}

/** The fingerprint, and after which line it is another first: it sees what no list has. */
function hashes(a, b, sides) {
    const [x, y] = [a, b].map((side) => side.actual.steps);
    const i = parting(x, y);
    const step = i === undefined ? [] : [difference(i + 1, 'fingerprint after this line', sides, x[i], y[i])];
    return [...step, ...hash('fingerprint', a, b, sides), ...hash('parity', a, b, sides)];
}

function hash(name, a, b, sides) {
    const [x, y] = [a, b].map((side) => side.actual[name]);
    const what = name === 'parity' ? 'parity fingerprint' : name;
    return x === y ? [] : [difference(undefined, what, sides, x, y)];
}

function ends(parts, a, b, sides) {
    const compare = (part) => (part === 'phases' ? phases(a, b, sides) : members(part, a, b, sides));
    return parts.flatMap(compare);
}

/* ---- gates --------------------------------------------------------------------------------------------- */

/** What an oracle has found: about fields, which is a gate of its own, or about anything else. */
function ruled({ problem }, host, aboutFields) {
    if (problem === undefined || (problem.oracle === 'required_fields') !== aboutFields) return [];
    return [difference(problem.line, 'a rule', ['expected', host], 'that it holds', problem.text)];
}

/** Why a run could not be compared at all. */
function broken(record, host) {
    if (record.error === undefined) return [];
    return [difference(record.error.line, 'the run', ['expected', host], 'its end', record.error.text)];
}

/** Gate 1: a host's run against what its fixture expects. */
export function fixtureGate(fixture, record, host, ownSeed) {
    const failed = broken(record, host);
    if (failed.length > 0) return failed;
    const expect = { actual: fixture.expect };
    const sides = ['expected', host];
    const order = [...events(expect, record, sides, eventMatches), ...hashes(expect, record, sides)];
    return [...ruled(record, host, false), ...ends(ENDS, expect, record, sides), ...(ownSeed ? order : [])];
}

/** Gate 2: a host against another one. */
export function parityGate(reference, record, hosts) {
    const failed = [...broken(reference, hosts[0]), ...broken(record, hosts[1])];
    if (failed.length > 0) return failed;
    const found = [...ends(PARITY, reference, record, hosts), ...hashes(reference, record, hosts)];
    return found.length === 0 ? [] : [...events(reference, record, hosts), ...found]; /* where it began */
}

/** Gate 3: a cancel event without its eight fields. */
export function fieldsGate(record, host) {
    const lacks = ({ line, seq, event, fields }) => difference(line, `event ${seq}, ${event}`,
        ['expected', host], 'all eight fields', `no ${fields.join(', no ')}`);
    return [...record.missing.map(lacks), ...ruled(record, host, true)];
}

/** Gate 4: a witness that may not follow the one before. */
export function witnessGate(record, host) {
    return record.witness.map(({ line, task, text: why }) => (
        difference(line, `the witness of task ${task}`, ['expected', host], 'one that may follow', why)));
}

/**
 * A fixture that was played through the package against the file, and against its script in the first host, whose
 * events have their budgets. It has no lines. Its events come in the order of another scheduler: compared are those of
 * each task and region, and the parity fingerprint.
 */
export function adapterGate(fixture, reference, record, host) {
    const failed = broken(record, host);
    if (failed.length > 0) return failed;
    const sides = ['expected', host];
    const expect = { actual: adapterExpects(fixture, reference) };
    const actual = { ...record.actual, cancels: cancelsOf(record.actual.events) };
    const parts = ['phases', 'outcomes', 'closure', 'chains', 'checks', 'cancels'];
    return [...ends(parts, expect, { ...record, actual }, sides), ...hash('parity', expect, record, sides)];
}

/** A script that ran to its end has all its events in full; else those of the file will do. */
function adapterExpects({ script, expect }, reference) {
    const { phases, outcomes, closure, chains = {}, results, parity } = expect;
    const checks = script.flatMap((line, i) => (/^check /.test(line) ? [results[i + 1] ?? 'EBB_OK'] : []));
    const cancels = cancelsOf(reference?.actual.events ?? expect.events);
    return { phases, outcomes, closure, chains: Object.values(chains), checks, parity, cancels };
}

/** Of each task and region: its cancel requests and how it went on, with its budget. */
function cancelsOf(events) {
    const cancels = {};
    for (const event of events) {
        const [, type, name, rest] = /^(\w+)\(([^)]*)\)(.*)$/.exec(event) ?? [];
        if (isCancelType(type)) (cancels[name] ??= []).push(`${type}${charged(type, cancels[name], rest)}`);
    }
    return cancels;
}

/** Polls are charged from the acknowledgement on, and what waits in the package costs others. */
function charged(type, before, rest) {
    const acked = before?.some((each) => each.startsWith('cancel_acked'));
    return acked ? rest.replace(/ polls \d+/, '') : rest;
}

/* ---- telling ------------------------------------------------------------------------------------------- */

/** The difference that comes first in the script; those of no line come last. */
export function first(differences) {
    const at = ({ line }) => line ?? Infinity;
    const earlier = (best, each) => (best === undefined || at(each) < at(best) ? each : best);
    return differences.reduce(earlier, undefined);
}

/** "line 8 `pump`, event 10: expected cleanup_done(worker); node: cancel_acked(worker)" */
export function tell(fixture, { line, what, sides }) {
    const where = line === undefined ? '' : `line ${line} \`${fixture.script[line - 1]}\`, `;
    const had = sides.map(([side, value]) => `${side}${side === 'expected' ? '' : ':'} ${value}`);
    return `${where}${what}: ${had.join('; ')}`;
}
