/*
 * What is left of a process that a test has started, seen from outside.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';

function read(pid, file) {
    try {
        return readFileSync(`/proc/${pid}/${file}`, 'utf8');
    } catch {
        return '';
    }
}

/** @returns {string[]} the processes of a group, and those that have a directory in their environment */
export function processesOf({ pid, dir }) {
    const isOurs = (each) => {
        const [state, , group] = read(each, 'stat').replace(/^.*\) /s, '').split(' ');
        const inGroup = Number(group) === pid && state !== 'Z';
        return inGroup || (dir && read(each, 'environ').includes(`=${dir}`));
    };
    const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
    return all.filter(isOurs).map((each) => `${each} ${read(each, 'comm').trim()}`);
}

export function leftOf({ pid, dir }) {
    return [...processesOf({ pid, dir }), ...(dir && existsSync(dir) ? [dir] : [])];
}

/** The guard works after its parent's end, so it has to be waited for. @returns what is left after 10 s */
export async function leftInTheEnd(what) {
    for (const end = Date.now() + 10000; leftOf(what).length && Date.now() < end;)
        await new Promise((resolve) => setTimeout(resolve, 50));
    return leftOf(what);
}
