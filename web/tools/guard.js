/*
 * A guard makes sure that a process started for a test, all its children and its directory are gone when the
 * test is: after an orderly end, after a throw, and after a signal, SIGKILL too.
 *
 * It is a shell that waits for the end of its input. Only this process holds the other end, so the kernel
 * tells the shell of our end whichever way it came. Hence there is one way a guarded process dies, and no
 * signal handler here that could change how the test itself dies.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';

/*
 * A killed process may be seen for a moment more, in the middle of a write even; and a child may have left
 * the group, as Chromium's crash handler does. Both are known by the mark in their environment. In the end,
 * after five seconds, rm says itself what it can't remove.
 */
const SCRIPT = `
mark=$1 dir=$2 tries=250
read -r group
read -r end
[ -z "$group" ] || kill -s KILL -- "-$group" 2>/dev/null
while [ $tries -gt 0 ]; do
    left=$(grep -lsF "$mark" /proc/[0-9]*/environ | cut -d/ -f3)
    if [ -n "$left" ]; then
        kill -s KILL $left 2>/dev/null
    elif [ -z "$dir" ] || rm -rf -- "$dir" 2>/dev/null; then
        exit 0
    fi
    sleep 0.02
    tries=$((tries - 1))
done
[ -z "$dir" ] || rm -rf -- "$dir"
`;

/**
 * Guards one process, what it starts, and one directory. Nothing here keeps Node running: a test that ends
 * without release() ends at once, and the guard does the rest.
 */
export class Guard {
    #shell;
    #exited;

    /** @param {string} [dir] removed at the end */
    constructor(dir = '') {
        const mark = randomUUID();
        /** What the process has to be started with. */
        this.env = { ...process.env, EBB_GUARD: mark };
        this.#shell = spawn('sh', ['-c', SCRIPT, 'guard', mark, dir], {
            detached: true,
            stdio: ['pipe', 'ignore', 'inherit'],
        });
        this.#exited = once(this.#shell, 'exit');
        this.#shell.stdin.on('error', () => {});
        this.#shell.stdin.unref();
        this.#shell.unref();
    }

    /** @param {import('node:child_process').ChildProcess} child started `detached`: it leads its group */
    watch(child) {
        if (child.pid !== undefined)
            this.#shell.stdin.write(`${child.pid}\n`);
        child.unref();
        for (const stream of child.stdio)
            stream?.unref();
    }

    /** Ends what is guarded; resolves when it is gone. */
    async release() {
        this.#shell.ref();
        this.#shell.stdin.end();
        await this.#exited;
    }
}
