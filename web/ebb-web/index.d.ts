/**
 * ebb-web: regions, tasks and cancellation that ends in good order, in the browser.
 *
 * Needs the types of the platform: `"lib": ["ES2022", "DOM"]`.
 */

declare global {
    /* As lib.esnext.disposable has it, for compilers and settings without that. */
    interface SymbolConstructor {
        readonly asyncDispose: unique symbol;
    }
}

/* ---- names --------------------------------------------------------------------------------------------- */

/** Why a caller may cancel something. The severity belongs to the kind. */
export type CancelKind =
    | 'USER' | 'RACE_LOST' | 'DISCONNECT' /* polite */
    | 'TIMEOUT' | 'BUDGET' | 'SIBLING_FAILED' | 'LEASE_LOST' | 'RESOURCE' /* urgent */
    | 'SHUTDOWN'; /* forced */

/** Why something is cancelled. PARENT: a region above was cancelled; NONE: it is not cancelled. */
export type ToldKind = CancelKind | 'PARENT' | 'NONE';

/** How badly. A later request may raise it and never lowers it. */
export type Severity = 'none' | 'polite' | 'urgent' | 'forced';

/** The protocol of a task. It only ever goes forward. */
export type Phase = 'Created' | 'Running' | 'CancelRequested' | 'Cancelling' | 'Finalizing' | 'Completed';

/** The protocol of a region. It only ever goes forward. */
export type RegionState = 'Open' | 'Closing' | 'Draining' | 'Finalizing' | 'Closed';

/** Where a runnable task waits for its poll; none: it is parked. */
export type Lane = 'none' | 'cancel' | 'timed' | 'ready';

/** What a task may promise to resolve. */
export type ObligationKind = 'permit' | 'ack' | 'lease' | 'fence' | 'io' | 'transaction';

/** Codes of EbbError: the statuses of the kernel, and those of this package. */
export type ErrorCode =
    | 'EBB_CANCELLED' | 'EBB_FAULTED' | 'EBB_FAILED' | 'EBB_TIMEOUT' | 'EBB_ERR_NOMEM' | 'EBB_ERR_INVALID'
    | 'EBB_ERR_STALE' | 'EBB_ERR_FOREIGN' | 'EBB_ERR_CLOSED' | 'EBB_ERR_REENTERED' | 'EBB_ERR_MASK_DEPTH'
    | 'EBB_ERR_MASK_UNDERFLOW' | 'EBB_ERR_RESOLVED' | 'EBB_ERR_LIMIT' | 'EBB_ERR_BUSY'
    | 'EBB_ERR_NOT_CLEANING' | 'EBB_ERR_NOT_TASK' | 'EBB_ERR_CORRUPT'
    /** the wasm module is not the one that this package was made for */
    | 'EBB_ERR_ABI'
    /** something was needed that was not passed to the Runtime */
    | 'EBB_ERR_CAPABILITY'
    /** the wasm instance trapped: this runtime is gone */
    | 'EBB_TRAPPED';

/** Events of the cancel protocol: each has all eight of its fields. */
export type CancelEventType =
    | 'region_cancelled' | 'cancel_requested' | 'cancel_strengthened' | 'cancel_acked' | 'task_forced'
    | 'cleanup_done' | 'finalized' | 'abandoned';

/** Everything that stands in a trace. */
export type EventType =
    | CancelEventType | 'gap' | 'idle' | 'region_opened' | 'region_closing' | 'region_forced'
    | 'region_draining' | 'region_finalizing' | 'region_closed' | 'region_joined' | 'chain_truncated'
    | 'task_spawned' | 'task_polled' | 'task_woken' | 'completed' | 'faulted' | 'stale_wake' | 'masked'
    | 'unmasked' | 'refused' | 'illegal' | 'task_joined' | 'obligation_reserved' | 'obligation_committed'
    | 'obligation_aborted' | 'obligation_leaked' | 'finalizer_added' | 'finalizer_done'
    | 'finalizer_abandoned' | 'timer_armed' | 'timer_fired' | 'timer_disarmed' | 'received' | 'workflow'
    | 'operation_begun' | 'operation_ended' | 'operation_abandoned' | 'region_stopping' | 'string' | 'named'
    | 'poll_ended' | 'waiting' | 'discarded' | 'present';

/* ---- the host ------------------------------------------------------------------------------------------ */

/**
 * What a runtime may use, and all that it uses. Taken once, and called without a `this`. What is not passed
 * is not used; needing it is an EbbError EBB_ERR_CAPABILITY that names it.
 */
export interface Host {
    /** Batches of polls run in microtasks, as long as a turn has time for them. */
    queueMicrotask: (callback: () => void) => void;
    /** Messages are where one turn ends and the next begins. */
    MessageChannel: new () => HostChannel;
    /** One timer at a time, for the next thing that is due. */
    setTimeout: (callback: () => void, ms: number) => unknown;
    /** Milliseconds that never go back, from wherever they start. */
    now: () => number;
    /** Without it a timer that is not needed any more comes, and does nothing. */
    clearTimeout?: ((id: any) => void) | undefined;
    /** For cx.fetch. */
    fetch?: ((input: any, init?: any) => Promise<any>) | undefined;
    /**
     * The window: the runtime flushes itself at its `pagehide`. hostOf does not pass it: a page that is restored from
     * the page cache afterwards finds its runtime closed.
     */
    page?: HostPage | undefined;
}

/** As much of a MessageChannel as is used. */
export interface HostChannel {
    port1: { onmessage: ((event: any) => any) | null; close(): void; ref?(): void; unref?(): void };
    port2: { postMessage(message: any): void };
}

/** As much of a window as is used. */
export interface HostPage {
    addEventListener(type: 'pagehide', listener: () => void): void;
    removeEventListener(type: 'pagehide', listener: () => void): void;
}

/** What a global object has of all that, `page` left out: `new Runtime(hostOf(globalThis))`. */
export function hostOf(global: object): Host;

/* ---- the runtime --------------------------------------------------------------------------------------- */

export interface RuntimeOptions {
    /**
     * Bytes of the trace's buffer; 0 or nothing: no trace. What does not fit between two takes is lost and
     * counted.
     */
    trace?: number | undefined;
    /** Bytes of the journal's buffer; 0 or nothing: no journal. */
    journal?: number | undefined;
    /**
     * What cleaning up may cost, by severity. The defaults: 5000 ms and 1024 polls, 2000 and 256, 500 and 64.
     */
    cleanup?: {
        polite?: CleanupBudget | undefined;
        urgent?: CleanupBudget | undefined;
        forced?: CleanupBudget | undefined;
    } | undefined;
    /** Another build of the kernel than the one in the package. Its ABI is checked. */
    module?: WebAssembly.Module | undefined;
}

export interface CleanupBudget {
    ms?: number | undefined;
    polls?: number | undefined;
}

/** A kernel in a WebAssembly instance of its own, and the pump that drives it on what was passed in. */
export class Runtime {
    /** @throws {EbbError} EBB_ERR_CAPABILITY, EBB_ERR_ABI, EBB_ERR_NOMEM */
    constructor(host: Host, options?: RuntimeOptions);

    /** 1 to 255: the top byte of its ids. The 256th runtime has the number of the first again. */
    readonly id: number;
    /**
     * The region of everything. A failure of a task in it is heard at once, and is what close() rejects with.
     */
    readonly root: Region;
    /**
     * The time that the kernel knows: nanoseconds that the page could run since the runtime was made. A tick that
     * comes late, in a hidden or frozen tab, advances it by one second at most.
     */
    readonly now: bigint;
    /** Undefined as long as all is well. */
    readonly crash: Crash | undefined;

    /** A region below the root. */
    region(options?: RegionOptions): Region;
    /**
     * Refuses new work everywhere, and settles when all that runs has ended. Not to be awaited in a task of this
     * runtime: see Region.join.
     */
    close(): Promise<Report>;
    /** Asks everything to stop: `rt.cancel('bye'); await rt.close();` */
    cancel(reason?: RegionReason): void;
    /**
     * For a page that is left: force, now. Every task is forced, what settles within the microtasks that follow ends as
     * usual, the rest is abandoned and its finalizers run, those of regions too; one that waits is abandoned, and the
     * next one runs. It needs no message and no timer, so all of it happens
     * before a `pagehide` listener's microtasks are over. Resolves with the root's report, whose `forced` names what
     * was cut. The runtime is closed then.
     */
    flush(): Promise<Report>;
    /** flush() was called, by the package at `pagehide` or by somebody else. */
    readonly flushed: boolean;
    /** `await using rt = new Runtime(...)`: cancels what is left, and waits for that. */
    [Symbol.asyncDispose](): Promise<void>;

    /** What the kernel counts. */
    stats(): Stats;
    /** The live tree as text, a line an object. */
    dump(): string;
    /** What was traced since the last time, as objects. It takes the trace: use this or takeTrace. */
    events(): TraceEvent[];
    /** The trace since the last time, as bytes to append to a file. With `flush` the block in hand too. */
    takeTrace(options?: { flush?: boolean }): Uint8Array;
    /** The journal since the last time: with it the native command replays the run. */
    takeJournal(options?: { flush?: boolean }): Uint8Array;

    /** What is known of a live task. @throws {EbbError} EBB_ERR_STALE, EBB_ERR_FOREIGN, EBB_ERR_INVALID */
    info(task: bigint): TaskInfo;
    /** What an observer holds of a live task's cancellation. Throws as info() does. */
    witness(task: bigint): Witness;
    /** What is known of a region that has not closed. Throws as info() does. */
    regionInfo(region: bigint): RegionInfo;
    /** Why a region is cancelled. Throws as info() does. */
    causes(region: bigint): Causes;
    /**
     * Makes a parked task runnable. A wake of one that has ended is counted in stats().staleWakes, and no
     * error.
     * @throws {EbbError} EBB_ERR_FOREIGN, EBB_ERR_INVALID
     */
    wake(task: bigint): void;
}

/**
 * What is left of an instance that trapped. Everybody who waited got `error`; every later call throws
 * it.
 */
export interface Crash {
    error: EbbError;
    /** What was traced and not taken. A TraceReader reads it. */
    trace: Uint8Array;
    /** What was journaled and not taken. */
    journal: Uint8Array;
}

export interface Stats {
    /** So far. */
    polls: number;
    spawned: number;
    ended: number;
    /** Wakes and cancels of what had ended. */
    staleWakes: number;
    /** Obligations that nobody resolved. */
    leaks: number;
    /** Tasks and finalizers that did not return. */
    abandoned: number;
    /** Transitions that the table of phases refused. Always 0, or there is a bug. */
    illegal: number;
    /** Events that did not fit into the trace. */
    traceLost: number;
    /** Now. */
    tasks: number;
    /** Not closed, the root included. */
    regions: number;
    obligations: number;
    timers: number;
    runnable: number;
    /** Places of tasks and regions whose ids are used up. */
    retired: number;
    /** The most polls of other lanes while the first of this one waited. */
    worstWait: { cancel: number; timed: number; ready: number };
    /** Of the wasm instance. It grows and does not shrink. */
    memoryBytes: number;
}

/* ---- regions ------------------------------------------------------------------------------------------- */

export interface RegionOptions {
    /** For errors, dumps and reports. */
    name?: string | undefined;
    /** Cancels the region when it aborts: TIMEOUT for a TimeoutError, else USER; its reason is the cause. */
    signal?: AbortSignal | undefined;
    /** Milliseconds; then it is cancelled with TIMEOUT. Infinity: none. */
    timeout?: number | undefined;
    /** 0 to 255; higher is more urgent. Its tasks have at least this one when it is cancelled. */
    priority?: number | undefined;
    /** The first failure is kept and the others go on. Without it the first failure cancels the others. */
    collect?: boolean | undefined;
    /**
     * A cleanup region: admits work while all around is cancelled. Only for a task under request or a
     * finalizer.
     */
    cleanup?: boolean | undefined;
}

/**
 * Why to stop: a text, an error (a TimeoutError is TIMEOUT, a Cancelled what it says, and it is the `cause`),
 * or all of it.
 */
export type Reason = string | Error | { kind?: CancelKind | undefined; message?: string | undefined };

/** For regions: with a budget of the caller's own. It tightens the one there is, and never widens it. */
export type RegionReason = Reason | {
    kind?: CancelKind | undefined;
    message?: string | undefined;
    /** Milliseconds that cleaning up may take. */
    within?: number | undefined;
    /** Polls that each task may use for it. */
    polls?: number | undefined;
};

/**
 * Owns tasks and regions; nothing in it outlives it. It is closed (no new work, what runs may finish),
 * cancelled (what runs is asked to stop, and has a budget to clean up) or forced (the budget is over).
 */
export class Region {
    private constructor();

    readonly id: bigint;
    readonly name: string;
    /** Undefined: it is the root. */
    readonly parent: Region | undefined;
    /**
     * Settles when everything in it has ended: with a report, or with the first failure of a task in it, the
     * very error that was thrown; one that nobody handles at its task comes first. A failure that nobody handles, here
     * or at the task's `result`, is an unhandled rejection. Reading the property handles nothing.
     */
    readonly done: Promise<Report>;
    readonly ended: boolean;
    /** How it ended, once it has, also if `done` rejects. */
    readonly report: Report | undefined;
    /** 0 until it is cancelled; then 1, and one more each time that becomes more severe. */
    readonly epoch: number;

    /**
     * A region below this one. @throws {EbbError} EBB_ERR_CLOSED, EBB_ERR_NOT_CLEANING
     * @throws {Cancelled} this region is cancelled
     */
    region(options?: RegionOptions): Region;
    /**
     * Starts a task. Its function is not called before this has returned. @throws {EbbError} EBB_ERR_CLOSED
     * @throws {Cancelled} the region is cancelled
     */
    spawn<T>(fn: (cx: Cx) => T | PromiseLike<T>, options?: TaskOptions): Task<T>;
    /**
     * What the first of some functions to settle gives, its failure too, each of them a task in a region of
     * their own. The others are cancelled with RACE_LOST, and have ended when this settles.
     */
    race<F extends (cx: Cx) => unknown>(fns: Iterable<F>, options?: RegionOptions): Promise<Awaited<ReturnType<F>>>;

    /**
     * An obligation of the region itself, for code that has no task: exactly one of commit and abort has to
     * follow. The region does not close before that. A region that is forced, or whose cleanup budget is over,
     * aborts it and reports it as a leak.
     * @throws {Cancelled} the region is cancelled
     * @throws {EbbError} EBB_ERR_CLOSED: it is closed
     */
    reserve(kind: ObligationKind, onAbort?: () => void): Obligation;
    /**
     * Runs `fn` when everything in the region has ended and before the region closes, last added first, masked.
     * It may be async, and may open cleanup regions. What it throws is a failure of the region.
     * @throws {Cancelled} the region is cancelled
     * @throws {EbbError} EBB_ERR_CLOSED: it is closed
     */
    defer(fn: (cx: Cx) => unknown): void;

    /**
     * Waits until everything in it has ended; then it closes by itself. Until then it admits work. Not to be
     * awaited in a task of this region or below it: that would wait for itself. Where the package can see it, which is
     * before the first `await` of the task's function and in cx.wait, it rejects with EBB_ERR_INVALID; who does not
     * await it there hears nothing.
     */
    join(): Promise<Report>;
    /**
     * No new work from now on, of what runs in it neither: spawn, region and reserve are refused. What runs
     * goes on to its end. To wait for work that makes more work, join(). As there, not to be awaited in a task of this
     * region.
     */
    close(): Promise<Report>;
    /**
     * Closes it, and asks everything in it to stop. Never blocks and runs nobody's code. Repeating it
     * strengthens.
     */
    cancel(reason?: RegionReason): void;
    /** The budget is over: what has not returned after eight more turns is abandoned. */
    force(): void;
    /** `await using region = rt.region()`: cancels what is left in it at the end of the block, and waits for that. */
    [Symbol.asyncDispose](): Promise<void>;

    /**
     * Its state, its cancel request, and how much lives in it; once it has closed, what that was then.
     */
    info(): RegionInfo;
    /** Why it is or was asked to stop, as the error that says so; undefined if it is not. */
    reason(): Cancelled | undefined;
    /** Why it is cancelled, link by link. @throws {EbbError} EBB_ERR_STALE: it has closed */
    causes(): Causes;
}

/** How a region ended. */
export interface Report {
    /**
     * What happened to the region. cancelled: it was, whatever its tasks made of that. failed: a task in it did, and
     * `done` rejects.
     */
    status: 'ok' | 'cancelled' | 'failed';
    /** The first hundred tasks that did not return. */
    abandoned: Work[];
    /** The first hundred obligations that nobody resolved. */
    leaked: Work[];
    /**
     * What force cut before it had settled, in this region and below it, the first thousand. Empty: all that was asked
     * to stop finished its cleanup.
     */
    forced: Cut[];
    /** All of these; of finalizers that did not return, too. */
    counts: { abandoned: number; leaked: number; forced: number };
    /** What its tasks threw, the first hundred. */
    failures: unknown[];
    /** What tasks and finalizers threw that had to end as cancelled, the first hundred. */
    suppressed: unknown[];
}

export interface Cut {
    /** The name of the task; of a finalizer of a region, the region's name and `.closer`. */
    site: string;
    /** The name of its region. */
    region: string;
    /**
     * Its function, or the region's finalizer, never returned. False: it did, after a wait of it had been cut, or a
     * finalizer of the task was cut.
     */
    abandoned: boolean;
}

export interface Work {
    id: bigint;
    /** The name of the task; of an obligation, that and its kind. */
    site: string | undefined;
}

export interface RegionInfo {
    /** Of its cleanup, once it is cancelled. Nanoseconds; 2n ** 64n - 1n: none. */
    deadline: bigint;
    /** The task that failed first; 0n: none. */
    failed: bigint;
    /** The name of a status: EBB_OK, EBB_CANCELLED, EBB_FAILED. */
    status: string;
    state: RegionState;
    kind: ToldKind;
    severity: Severity;
    epoch: number;
    tasks: number;
    children: number;
    obligations: number;
    abandoned: number;
    leaked: number;
    /** At most 47 bytes. */
    message: string;
}

/** The region's own reason first, the root cause last. */
export interface Causes {
    links: Cause[];
    /** There were more than 24, and those in the middle were left out. */
    truncated: boolean;
}

export interface Cause {
    region: bigint;
    /** The task that asked; 0n: the host. */
    origin: bigint;
    kind: ToldKind;
    severity: Severity;
    message: string;
}

/* ---- tasks --------------------------------------------------------------------------------------------- */

export interface TaskOptions {
    /** For errors, dumps and reports. Without it, the function's. */
    name?: string | undefined;
    /** Cancels the task when it aborts: TIMEOUT for a TimeoutError, else USER; its reason is the cause. */
    signal?: AbortSignal | undefined;
    /** Milliseconds; then it is cancelled with TIMEOUT. Infinity: none. */
    timeout?: number | undefined;
    /** After so many polls it is cancelled with BUDGET. 0: none. */
    polls?: number | undefined;
    /** 0 to 255; higher is more urgent. */
    priority?: number | undefined;
}

/** An async function that the kernel polls. */
export class Task<T = unknown> {
    private constructor();

    readonly id: bigint;
    readonly name: string;
    readonly region: Region;
    readonly cx: Cx;
    /**
     * What the function returned, once the task has ended, finalizers and all; what it threw; or Cancelled.
     * Nobody has to look: a failure is the region's, unless it is handled here.
     */
    readonly result: Promise<T>;
    readonly ended: boolean;
    /** 0 until it is asked to stop; then 1, and one more each time that becomes more severe. */
    readonly epoch: number;

    /** What an observer holds of its cancellation; of one that has ended, the last. */
    witness(): Witness;
    /** Asks it to stop. Never blocks and never runs its code. Repeating it strengthens. */
    cancel(reason?: Reason): void;
    /** Its budget is over: if it has not returned after eight more turns it is abandoned. */
    force(): void;
}

/** One may follow another only if epoch, phase and severity did not go back and the budget did not widen. */
export interface Witness {
    task: bigint;
    region: bigint;
    epoch: number;
    phase: Phase;
    severity: Severity;
    kind: ToldKind;
    budget: {
        /** Nanoseconds, as Runtime.now; 2n ** 64n - 1n: none. */
        deadline: bigint;
        /** 4294967295: no limit. */
        polls: number;
        priority: number;
    };
}

export interface TaskInfo {
    region: bigint;
    /** Of its cleanup. Nanoseconds; 2n ** 64n - 1n: none. */
    deadline: bigint;
    phase: Phase;
    /** How deep it is masked. */
    mask: number;
    lane: Lane;
    epoch: number;
    kind: ToldKind;
    severity: Severity;
    /** Its budget is over. */
    forced: boolean;
    /** That it may still use; 4294967295: no limit. */
    polls: number;
    priority: number;
    /** At most 47 bytes. */
    message: string;
}

/**
 * What a task's function is given: all that it may ask for. Call its methods as `cx.sleep(1)`; taken apart
 * they do not work. Every promise from here is a checkpoint: it rejects with Cancelled, and acknowledges
 * that, once the task is asked to stop and is not masked. After the task has ended its methods throw, or
 * reject with, EBB_ERR_STALE.
 */
export class Cx {
    private constructor();

    readonly task: Task;
    /**
     * Aborts in the turn after a request, once nothing masks it; its reason is a Cancelled. Acknowledges
     * nothing. Read again under a mask or in a finalizer after that, it is a signal for the cleanup, which aborts at
     * force.
     */
    readonly signal: AbortSignal;
    /** Asked to stop, and not masked. Acknowledges nothing. */
    readonly cancelled: boolean;
    /** The region admits no more work: finish what you have, take nothing new. */
    readonly stopping: boolean;
    /** Asked to stop, masked or not. */
    readonly asked: boolean;
    /** Why it is asked to stop, as the error that says so; undefined if it is not. */
    reason(): Cancelled | undefined;

    /**
     * A place where the task may stop. @throws {Cancelled} if it is asked to and is not masked; acknowledges
     * that
     */
    checkpoint(): void;
    /**
     * Runs `fn` with requests held back, across its awaits. Nests to 32. @throws {EbbError}
     * EBB_ERR_MASK_DEPTH
     */
    mask<T>(fn: (cx: Cx) => T | PromiseLike<T>): Promise<T>;

    /**
     * A promise to resolve something: exactly one of commit and abort has to follow. `onAbort` is called when
     * it is aborted, also because the task ended without either, which is reported as a leak.
     * @throws {EbbError} EBB_ERR_CLOSED
     */
    reserve(kind: ObligationKind, onAbort?: () => void): Obligation;
    /**
     * Runs `fn` when the function has settled, last added first, masked. @throws {EbbError} EBB_ERR_CLOSED
     */
    defer(fn: (cx: Cx) => unknown): void;
    /** A region of the task's own: what is open when the function settles is cancelled and waited for. */
    region(options?: RegionOptions): Region;

    /** Waits so many milliseconds; Infinity: until it is cancelled. */
    sleep(ms: number): Promise<void>;
    /** Lets others run first. */
    yield(): Promise<void>;
    /** Waits for a promise of anybody's. What it stands for goes on if the task is cancelled meanwhile. */
    wait<T>(promise: T | PromiseLike<T>): Promise<T>;
    /** The next event of that type. Its listener goes when the wait is over, whatever ended it. */
    once<T extends EventTarget, K extends string>(target: T, type: K,
        options?: boolean | AddEventListenerOptions): Promise<EventOf<T, K>>;
    once<E extends Event>(target: EventTarget, type: string,
        options?: boolean | AddEventListenerOptions): Promise<E>;
    /** Listens until the function settles. The returned function stops it before. */
    on<T extends EventTarget, K extends string>(target: T, type: K, listener: (event: EventOf<T, K>) => unknown,
        options?: boolean | AddEventListenerOptions): () => void;
    on<E extends Event>(target: EventTarget, type: string, listener: (event: E) => unknown,
        options?: boolean | AddEventListenerOptions): () => void;
    /**
     * The host's fetch, aborted with `cx.signal`, its body included; and by a signal of the caller's. Under a mask and
     * in a finalizer it works after a cancel too, until the cleanup's budget is over.
     * @throws {EbbError} EBB_ERR_CAPABILITY
     */
    fetch(input: RequestInfo | URL, init?: RequestInit | null): Promise<Response>;
}

/**
 * The event that a target has of a type, by its handler: that of `onclick` for 'click'. An Event if it has no such
 * handler.
 */
export type EventOf<T, K extends string> =
    T extends { [P in `on${K}`]: ((this: any, event: infer E) => any) | null }
        ? E extends Event ? E : Event
        : Event;

/** A promise of a task, or of a region, to resolve something. */
export class Obligation {
    private constructor();

    readonly id: bigint;
    readonly kind: ObligationKind;
    /** Committed or aborted, by whomever: `cx.defer(() => o.resolved || o.abort())` */
    readonly resolved: boolean;
    /** It is done. @throws {EbbError} EBB_ERR_RESOLVED the second time */
    commit(): void;
    /** It is not done, and won't be; calls onAbort. @throws {EbbError} EBB_ERR_RESOLVED the second time */
    abort(): void;
}

/* ---- errors -------------------------------------------------------------------------------------------- */

/** What the runtime refuses. */
export class EbbError extends Error {
    private constructor();

    readonly name: 'EbbError';
    readonly code: ErrorCode;
}

/**
 * A task was asked to stop. It has the name of the platform's own: code that knows AbortError knows this one
 * too.
 */
export class Cancelled extends Error {
    private constructor();

    /** TimeoutError: the cancel began with a TIMEOUT. */
    readonly name: 'AbortError' | 'TimeoutError';
    readonly kind: CancelKind | 'PARENT';
    readonly severity: 'polite' | 'urgent' | 'forced';
    readonly epoch: number;
    /** The message that was given with the request, without the kind that stands before it in `message`. */
    readonly reason: string;
    /** The reason of the AbortSignal that made the request, or the error that was given as the reason. */
    readonly cause?: unknown;
}

/* ---- the trace ----------------------------------------------------------------------------------------- */

/** One event. Those of the cancel protocol have all of the first eight fields. */
export interface TraceEvent {
    type: EventType;
    /** 0n: of no task. */
    taskId: bigint;
    /** 0n: of no region. */
    regionId: bigint;
    /** 0: not cancelled. */
    cancelEpoch: number;
    /** Of the task after the event, or of the region; empty: of neither. */
    cancelPhase: Phase | RegionState | '';
    /** Empty: not cancelled. */
    cancelKind: CancelKind | 'PARENT' | '';
    /** The number of the event; a gap leaves some out. */
    decisionSeq: bigint;
    /** The turn of the host's loop. */
    hostTurnId: bigint;
    /** The batch in that turn. */
    microtaskBatchId: bigint;
    /** Empty: not cancelled. */
    severity: Severity | '';
    /** Nanoseconds, as Runtime.now. */
    time: bigint;
    /** By type: polls of a budget, a lane, a depth, a kind. */
    value: number;
    /** Of what begins: its own name; empty: it has none. */
    name: string;
    /** Of what begins: where that is in the program, or what it is; empty: not known. */
    site: string;
    /** The name of the status that `value` is, where it is one; else empty. */
    status: string;
    /** By type: a deadline, a timer, an obligation, who woke, how many were lost. */
    other: bigint;
    /** A name or a message, where the event has one. */
    text: string;
}

/** Reads a trace as it is taken, piece by piece; the first piece has the header. */
export class TraceReader {
    /** @param runtime any: it knows the names */
    constructor(runtime: Runtime);
    /** The events in these bytes. @throws {EbbError} EBB_ERR_CORRUPT, with the offset */
    push(bytes: Uint8Array): TraceEvent[];
}
