/*
 * Mistakes that nobody chooses: every place of a source where a small change is possible, ranked by a hash of the seed,
 * the file, the line and the change. So a change of one line leaves the rank of all others alone.
 */
import { createHash } from 'node:crypto';

/** Each finds the places of a line: [from, to] pairs, as index, length and replacement. */
const OPERATORS = {
    'flips a comparison': (line) => swaps(line, [[' === ', ' !== '], [' !== ', ' === '], [' == ', ' != '], [' != ', ' == '],
        [' <= ', ' < '], [' >= ', ' > '], [' < ', ' >= '], [' > ', ' <= ']]),
    'swaps and for or': (line) => swaps(line, [[' && ', ' || '], [' || ', ' && ']]),
    'drops an await': (line) => swaps(line, [['await ', '']]),
    'changes a constant': (line) => numbers(line),
    'drops a statement': (line) => statement(line),
};

function swaps(line, pairs) {
    return pairs.flatMap(([from, to]) => places(line, from).map((at) => [at, from.length, to]));
}

function places(line, text) {
    const found = [];
    for (let at = line.indexOf(text); at >= 0; at = line.indexOf(text, at + 1)) found.push(at);
    return found;
}

function numbers(line) {
    return [...line.matchAll(/(?<![\w.'"$#])(\d+)(?![\w.'"])/g)].map(({ index, 1: n }) => [index, n.length, String(Number(n) + 1)]);
}

/** A call or an assignment that is a line of its own. */
function statement(line) {
    const [, indent, code] = /^(\s+)((?:[\w$.#[\]>-]+|this\.\S+?)(?:\(.*\)| [-+|&?]*= .*);)$/.exec(line) ?? [];
    if (code === undefined || /^(return|throw|const|let|static|case|import|export)\b/.test(code)) return [];
    return [[indent.length, code.length, ';']];
}

/** Comments and texts are not code; what only reports is not either. */
function isCode(line) {
    const text = line.trim();
    if (text === '' || /^(\*|\/\*|\/\/|#|import |export \{|EBB__ASSERT)/.test(text)) return false;
    return !/[`'"].*[<>=&|].*[`'"]|new (Type)?Error|ebb__journal|assert\(/.test(text);
}

/** @param {{ file: string, text: string }[]} sources */
export function candidates(sources) {
    return sources.flatMap(({ file, text }) => text.split('\n').flatMap((line, i) => {
        const code = line.split('/*')[0];
        if (!isCode(code)) return [];
        return Object.entries(OPERATORS).flatMap(([operator, find]) => find(code).map(([at, length, to]) => (
            { name: operator, file, line: i + 1, was: line.trim(), is: `${line.slice(0, at)}${to}${line.slice(at + length)}`.trim() })));
    }));
}

/** In the order of a seed. */
export function ranked(list, seed) {
    const rank = ({ file, was, is }) => createHash('sha256').update(`${seed}\n${file}\n${was}\n${is}`).digest('hex');
    return list.map((mutant) => ({ mutant, at: rank(mutant) })).sort((a, b) => (a.at < b.at ? -1 : 1)).map(({ mutant }) => mutant);
}

/** The text of a source with the change in it. */
export function changed(text, { line, from, to, was, is, name }) {
    if (from !== undefined) {
        if (text.split(from).length !== 2) throw new Error(`${name}: expected its text once: ${from}`);
        return text.replace(from, () => to);
    }
    const lines = text.split('\n');
    lines[line - 1] = lines[line - 1].replace(was, () => is);
    return lines.join('\n');
}
