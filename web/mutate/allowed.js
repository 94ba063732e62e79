/*
 * Changes that no test of the package can find, because nothing that it promises depends on them, and why. `was` and
 * `is` are the line before and after, without indentation.
 */
const GONE = 'if (this.#crash !== undefined || this.root.ended) return;';
const NOT_GONE = 'if (this.#crash !== undefined && this.root.ended) return;';

export const ALLOWED = [
    { file: 'web/ebb-web/src/runtime.js', was: GONE, is: NOT_GONE,
        why: 'saves work only: after the end there is no message or timer, and a batch finds nothing to poll' },
    { file: 'kernel/task.c', was: 'ebb__polling(rt, t);', is: ';',
        why: 'for joins and asks inside a poll, which the package has none of; tests/kernel/joins.c has' },
    { file: 'sched/pump.c', was: 'bool contended = rt->contended || (work & (work - 1)) != 0;',
        is: 'bool contended = rt->contended || (work & (work - 1)) != 1;',
        why: 'counts waits also when one lane has work, and then they are 0' },
];
