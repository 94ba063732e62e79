/*
 * Mistakes that somebody could make, each with a name: in the JavaScript of the package, and in rules and constants of
 * the kernel. `from` stands once in the file.
 */
const src = (file) => `web/ebb-web/src/${file}`;

export const NAMED = [
    { name: 'a wait that acknowledges nothing', file: src('cx.js'),
        from: 'this.#rt.abi.call.checkpoint(this.#task.id);', to: '' },
    { name: 'a mask that the kernel does not hear of', file: src('cx.js'),
        from: "this.#check(this.#rt.abi.call.mask(this.#alive('mask')), 'mask');", to: '' },
    { name: 'an unmask that wakes nobody', file: src('cx.js'),
        from: 'if (this.cancelled) this.#rt.wake(this.#task.id);', to: '' },
    { name: 'an abort whose hook is not run', file: src('obligation.js'), from: 'this.#rt.runHook(this.#onAbort);', to: '' },
    { name: 'finalizers that nobody waits for', file: src('obligation.js'),
        from: 'return this.#status;', to: 'return STATUS.OK;' },
    { name: 'a failure that counts as a cancel', file: src('task.js'),
        from: '? STATUS.CANCELLED : STATUS.FAILED', to: '? STATUS.CANCELLED : STATUS.CANCELLED' },
    { name: 'a cleanup region that is none', file: src('options.js'), from: '(cleanup ? 2 : 0)', to: '0' },
    { name: 'a region that does not collect', file: src('options.js'), from: '(collect ? 1 : 0)', to: '0' },
    { name: 'a budget of the caller that is ignored', file: src('runtime.js'),
        from: 'budget.deadline, budget.polls)', to: 'FOREVER, 0xffffffff)' },
    { name: 'milliseconds that are too long', file: src('options.js'), from: 'ms * 1e6', to: 'ms * 1e7' },
    { name: 'an obligation in the wrong region', file: src('region.js'),
        from: 'region_reserve(0n, this.id,', to: 'region_reserve(0n, rt.root.id,' },
    { name: 'a polite budget of 4 s', file: 'kernel/runtime.c', from: '5000 * EBB_MS, 1024', to: '4000 * EBB_MS, 1024' },
    { name: 'an urgent budget of 255 polls', file: 'kernel/runtime.c', from: '2000 * EBB_MS, 256', to: '2000 * EBB_MS, 255' },
    { name: 'a forced budget of 65 polls', file: 'kernel/runtime.c', from: '500 * EBB_MS, 64', to: '500 * EBB_MS, 65' },
    { name: 'a fourth kept back for finalizers', file: 'kernel/reason.c', from: 'ebb__kept_of(deadline - now)', to: '(deadline - now) / 4' },
    { name: 'a shutdown that is urgent', file: 'kernel/reason.c', from: '"SHUTDOWN", EBB_SEVERITY_FORCED', to: '"SHUTDOWN", EBB_SEVERITY_URGENT' },
    { name: 'a lost lease that is polite', file: 'kernel/reason.c', from: '"LEASE_LOST", EBB_SEVERITY_URGENT', to: '"LEASE_LOST", EBB_SEVERITY_POLITE' },
    { name: 'a chain of 23 causes', file: 'kernel/runtime.c', from: 'opts->chain_depth : EBB_CHAIN_DEPTH', to: 'opts->chain_depth : 23' },
    { name: 'a 32nd mask that is refused', file: 'kernel/checkpoint.c', from: 't->mask == EBB_MASK_MAX', to: 't->mask == EBB_MASK_MAX - 1' },
    { name: 'two more polls for a task that is forced', file: 'kernel/request.c',
        from: '->force_left = EBB__FORCE_POLLS;', to: '->force_left = 2;' },
    { name: 'a witness whose phase may go back', file: 'kernel/witness.c',
        from: 'later->phase < earlier->phase', to: 'later->phase > earlier->phase + 9' },
    /* hangs, so it comes last */
    { name: 'a checkpoint that never throws', file: src('cx.js'),
        from: 'if (call.checkpoint(id) === STATUS.CANCELLED) throw this.reason();', to: 'call.checkpoint(id);' },
];
