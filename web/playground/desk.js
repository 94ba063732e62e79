/**
 * Where a person tells one task what to do. The task listens here with `cx.on`, so what is asked is done by
 * the task's own code, in its own name, and nobody listens any more once it has settled.
 *
 * `masks` has the masks that a person put on and has not taken off; `leases` what the task holds.
 */
export class Desk extends EventTarget {
    checks = true; /* it waits with cx.sleep, which is a checkpoint; else with something that never looks */
    masks = [];
    leases = [];
    #tempo;
    #tell;
    #looks = () => {}; /* ends a wait that does not look */

    /**
     * @param {import('./tempo.js').Tempo} tempo
     * @param {(error: Error) => void} tell hears what the runtime refuses
     */
    constructor(tempo, tell) {
        super();
        this.#tempo = tempo;
        this.#tell = tell;
    }

    /** Asks for 'mask', 'unmask', 'checkpoint', 'hold' or 'commit'. */
    ask(what) {
        this.dispatchEvent(new Event(what));
    }

    /** By the task, first of all. */
    attend(cx) {
        const on = (what, fn) => cx.on(this, what, () => this.#safely(fn));
        on('mask', () => cx.mask(() => new Promise((lift) => this.masks.push(lift))));
        on('unmask', () => this.masks.pop()?.());
        on('checkpoint', () => this.#looks());
        on('hold', () => this.leases.push(cx.reserve('lease')));
        on('commit', () => this.leases.pop()?.commit());
    }

    /** By the task, last of all: a mask that nobody takes off would hold its finalizers back. */
    leave() {
        for (const lift of this.masks.splice(0)) lift();
    }

    async #safely(fn) {
        try {
            await fn();
        } catch (error) {
            this.#tell(error);
        }
    }

    /** One wait of a task: a checkpoint, or one that only looks when a person says so. */
    async beat(cx, ms) {
        if (this.checks) await cx.sleep(ms);
        else if (await this.#doze(ms) || cx.task.ended) cx.checkpoint(); /* one that was abandoned ends */
    }

    /** True if it was to look. */
    #doze(ms) {
        return new Promise((resolve) => {
            this.#looks = () => resolve(true);
            this.#tempo.sleep(ms).then(() => resolve(false));
        });
    }
}
