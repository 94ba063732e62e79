import { Abi, NAMES, STATUS, u64 } from './abi.js';
import { Channel } from './channel.js';
import { Clock } from './clock.js';
import { Cancelled, EbbError, isError, raise, safely } from './errors.js';
import { capability, checkHost } from './host.js';
import { Links } from './links.js';
import { checkKeys, FOREVER, integer, nanoseconds, printable, regionOptions } from './options.js';
import { reasonOf, reasonOfAbort } from './reason.js';
import { Region } from './region.js';
import { Slots } from './slots.js';
import { TraceReader } from './trace.js';
import { decode } from './utf8.js';

const LONGEST_MS = 2 ** 31 - 1; /* what setTimeout takes */
const TURN_MS = 8;
const TURN_POLLS = 4096;
const MOST_BYTES = 2 ** 30; /* of a recorder */
const BLAMES = 100; /* that a report names */
const WITNESS_EPOCH = 24; /* where a witness in the scratch has its epoch */
const BATCH_POLLS = 64;
const FLUSH_HOPS = 32; /* microtasks that code has to unwind in, between two polls of a flush */

let runtimes = 0;

/**
 * A kernel in a WebAssembly instance of its own, and the pump that drives it.
 *
 * The pump is never entered from a call: whatever makes work for it only schedules it, so `spawn` has returned
 * before its function is called, and what is woken in a poll is polled in the next batch. A batch has as many polls
 * as tasks were runnable when it began, and BATCH_POLLS at most. Batches are microtasks, until TURN_MS or TURN_POLLS
 * are used up in one turn of the host's loop; then the next one is a message, so that timers, input and painting have
 * theirs. What a poll resumes runs in microtasks after the batch, and often takes longer than the polls: batches are
 * small so that it runs between them and counts in TURN_MS. To know where a turn ends, the first batch of each posts
 * a message whose arrival is the next.
 *
 * A task whose budget is over has its last polls in turns of their own: code that unwinds over some awaits needs
 * microtasks for that.
 */
export class Runtime {
    #host;
    #options;
    #channel;
    #scheduled = false;
    #byMessage = false; /* scheduled, and the next message runs it */
    #pumping = false;
    #links;
    #hooks = []; /* that run, and that wait for these */
    #late = []; /* what is to be done when this batch is over */
    #overdue = new Set(); /* tasks to be woken in the next turn */
    #crash;
    #closing = false; /* the root may be closed after a batch */
    #timer; /* of the host, if one is set */
    #timerDue = FOREVER;
    #timerMs = Infinity; /* the clock's tick when it was set */
    #clock;
    #flushed = false;
    #turn = 1n;
    #batch = 0n;
    #turnBegan; /* when the first batch of this turn ran; undefined: none has */
    #turnPolls = 0;
    #taken = [[], [], []];
    #events;

    /**
     * @param {object} host what it may use: `{ queueMicrotask, MessageChannel, setTimeout, now }`, and if they are
     *     wanted `fetch` and `clearTimeout`; see hostOf
     * @param {{ trace?: number, journal?: number, cleanup?: object, module?: WebAssembly.Module }} options bytes to
     *     record into
     */
    constructor(host, options = {}) {
        this.#host = checkHost(host);
        this.#options = options;
        this.#clock = new Clock(this.#host.now);
        this.#links = new Links((target, reason) => this.#abort(target, reason), this.#host.now, (fn) => this.nextTurn(fn));
        this.now = 0n;
        this.running = undefined; /* whose function is on the stack: a task, or who runs a region's finalizers */
        this.slots = new Slots();
        this.#channel = new Channel(host.MessageChannel, () => this.#newTurn());
        this.abi = new Abi(options.module, this.#callbacks(), (error) => this.#trapped(error));
        this.id = runtimes++ % 255 + 1;
        this.#start();
        this.root = new Region(this, undefined, 'root');
        this.root.admitted(u64(this.abi.call.root()), 0);
        this.#host.page?.addEventListener('pagehide', this.#leave);
    }

    #start() {
        const { abi } = this;
        const { cleanup = {} } = checkKeys(this.#options, ['trace', 'journal', 'cleanup', 'module'], 'new Runtime');
        const severities = ['polite', 'urgent', 'forced'];
        checkKeys(cleanup, severities, 'cleanup');
        severities.forEach((severity, i) => {
            const { ms = 0, polls = 0 } = checkKeys(cleanup[severity] ?? {}, ['ms', 'polls'], `cleanup.${severity}`);
            abi.view.setBigUint64(abi.at + 12 * i, nanoseconds(ms, 'cleanup'), true);
            abi.view.setUint32(abi.at + 12 * i + 8, integer(polls, 0xfffffffe, 'cleanup polls'), true);
        });
        const { trace = 0, journal = 0 } = this.#options;
        const status = abi.call.start(this.id, 0n, integer(trace, MOST_BYTES, 'trace'),
            integer(journal, MOST_BYTES, 'journal'), 1);
        if (status < 0) throw abi.error(status, 'new Runtime');
    }

    /* ---- for everybody ---------------------------------------------------------------------------------- */

    /** A region below the root. */
    region(options) {
        return this.root.region(options);
    }

    /** Closes everything, and settles when all has ended. */
    close() {
        return this.root.close();
    }

    /** Asks everything to stop; `await rt.close()` waits for that. */
    cancel(reason) {
        this.root.cancel(reason);
    }

    /**
     * For a page that is left: force, now. Every task is forced, and what settles within the microtasks that follow
     * ends as usual; the rest is abandoned, and its finalizers run. Needs no message and no timer. After it the
     * runtime is closed. Resolves with the root's report.
     */
    flush() {
        if (!this.#flushed && this.#crash === undefined && !this.root.ended) {
            this.#flushed = true;
            this.root.force();
            this.afterBatch(() => this.#flush());
        }
        return this.root.done;
    }

    get flushed() {
        return this.#flushed;
    }

    #leave = () => {
        this.flush();
    };

    /** A round: all that can run does, then promises may settle. A task has eight polls, as it has at any force. */
    async #flush() {
        do {
            this.#wakeOverdue();
            do this.#run(); while (this.#moreNow());
            for (let hop = 0; hop < FLUSH_HOPS; hop++) await null;
        } while (this.#overdue.size > 0 || this.#moreNow() || this.#spendBudget());
    }

    /**
     * What still waits is a finalizer: a part of the budget is kept for those, also at force. A page that is left has
     * no such time, so the kernel's goes on to the end of it. False if it is there already.
     */
    #spendBudget() {
        if (this.#crash !== undefined || this.root.ended) return false;
        const { deadline } = this.regionInfo(this.root.id);
        if (deadline <= this.now || deadline === FOREVER) return false;
        this.now = deadline;
        this.abi.call.advance(deadline);
        return true;
    }

    #moreNow() {
        return this.#crash === undefined && !this.root.ended && u64(this.abi.call.next_due()) <= this.now;
    }

    /** At the end of an `await using` block: cancels what is left, and waits for that. */
    async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
        this.cancel('its block has ended');
        await this.close();
    }

    /** What the kernel counts. */
    stats() {
        this.abi.call.stats();
        const w = this.abi.words();
        const big = ['polls', 'spawned', 'ended', 'staleWakes', 'leaks', 'abandoned', 'illegal', 'traceLost'];
        const small = ['tasks', 'regions', 'obligations', 'timers', 'runnable', 'retired'];
        return {
            ...Object.fromEntries(big.map((name) => [name, Number(w.u64())])),
            ...Object.fromEntries(small.map((name) => [name, w.u32()])),
            worstWait: { cancel: w.u32(), timed: w.u32(), ready: w.u32() },
            memoryBytes: this.abi.memoryBytes,
        };
    }

    /** The live tree as text, a line an object. */
    dump() {
        this.abi.call.dump();
        return decode(this.#take(2));
    }

    /** The trace since the last time, as bytes to append to a file. `flush`: the block in hand too. */
    takeTrace({ flush = false } = {}) {
        if (this.#crash === undefined) this.abi.call.take_trace(flush ? 1 : 0);
        return this.#take(0);
    }

    takeJournal({ flush = false } = {}) {
        if (this.#crash === undefined) this.abi.call.take_journal(flush ? 1 : 0);
        return this.#take(1);
    }

    /** What was traced since the last time, as objects. Takes the trace: it is for those who do not write it. */
    events() {
        this.#events ??= new TraceReader(this);
        return this.#events.push(this.takeTrace({ flush: true }));
    }

    /** What is known of a live task, by its id. */
    info(id) {
        this.#found(this.abi.call.task_info(checkId(id, 'task')), 'task', id);
        const { abi } = this;
        const w = abi.words();
        const info = { region: w.u64(), deadline: w.u64() };
        info.phase = abi.name(NAMES.PHASE, w.i32());
        info.mask = w.i32();
        info.lane = abi.name(NAMES.LANE, w.i32());
        info.epoch = w.i32();
        info.kind = abi.name(NAMES.CANCEL_KIND, w.i32());
        info.severity = abi.name(NAMES.SEVERITY, w.i32());
        info.forced = w.i32() !== 0;
        info.polls = w.u32();
        info.priority = w.i32();
        info.message = w.message();
        return info;
    }

    witness(id) {
        this.#found(this.abi.call.witness(checkId(id, 'task')), 'task', id);
        return this.#witness();
    }

    #witness() {
        const { abi } = this;
        const w = abi.words();
        const seen = { task: w.u64(), region: w.u64() };
        const deadline = w.u64();
        seen.epoch = w.i32();
        seen.phase = abi.name(NAMES.PHASE, w.i32());
        seen.severity = abi.name(NAMES.SEVERITY, w.i32());
        seen.kind = abi.name(NAMES.CANCEL_KIND, w.i32());
        seen.budget = { deadline, polls: w.u32(), priority: w.i32() };
        return seen;
    }

    /** Of a task that ends: most were never cancelled, and have nothing to show. */
    #lastWitness() {
        const { abi } = this;
        return abi.view.getInt32(abi.at + WITNESS_EPOCH, true) === 0 ? undefined : this.#witness();
    }

    regionInfo(id) {
        this.#found(this.abi.call.region_info(checkId(id, 'region')), 'region', id);
        const { abi } = this;
        const w = abi.words();
        const info = { deadline: w.u64(), failed: w.u64() };
        info.status = abi.name(NAMES.STATUS, w.i32());
        info.state = abi.name(NAMES.REGION_STATE, w.i32());
        info.kind = abi.name(NAMES.CANCEL_KIND, w.i32());
        info.severity = abi.name(NAMES.SEVERITY, w.i32());
        for (const name of ['epoch', 'tasks', 'children', 'obligations', 'abandoned', 'leaked']) info[name] = w.i32();
        info.message = w.message();
        return info;
    }

    rootMessage(region) {
        this.#found(this.abi.call.root_message(region), 'region', region);
        return this.abi.words().message();
    }

    causes(id) {
        this.#found(this.abi.call.cause_chain(checkId(id, 'region')), 'region', id);
        const { abi } = this;
        const w = abi.words();
        const n = w.i32();
        const truncated = w.i32() !== 0;
        const link = () => ({
            region: w.u64(),
            origin: w.u64(),
            kind: abi.name(NAMES.CANCEL_KIND, w.i32()),
            severity: abi.name(NAMES.SEVERITY, w.i32()),
            message: w.message(),
        });
        return { links: Array.from({ length: n }, link), truncated };
    }

    /**
     * Makes a parked task runnable. A wake of one that has ended is counted, and no error. In a poll it is kept until
     * the batch is over.
     */
    wake(id) {
        if (this.#crash !== undefined) return;
        if (this.#pumping && isMine(checkId(id, 'task'), this.id)) {
            this.#late.push(() => this.wake(id));
            return;
        }
        const status = this.#tell(() => this.abi.call.wake(0n, checkId(id, 'task')));
        if (status < 0 && status !== STATUS.STALE) throw this.abi.error(status, `wake of task ${idText(id)}`);
        this.schedule();
    }

    /** Calls the kernel for nobody in particular: if the call traps, everybody who waits gets that error anyway. */
    #tell(call) {
        try {
            return call();
        } catch (error) {
            if (this.#crash === undefined) throw error;
            return STATUS.OK;
        }
    }

    disarm(timer) {
        if (this.#crash === undefined) this.#tell(() => this.abi.call.timer_disarm(timer));
    }

    /** What was recorded of an instance that trapped, and why; undefined as long as all is well. */
    get crash() {
        return this.#crash;
    }

    #found(status, what, id) {
        if (status < 0) throw this.abi.error(status, `${what} ${idText(id)}`);
    }

    /* ---- for regions and tasks -------------------------------------------------------------------------- */

    capability(name) {
        return capability(this.#host, name);
    }

    /** Tells the kernel the time, and returns it: nanoseconds since the runtime was made. */
    clock() {
        const now = this.#clock.tell();
        if (now > this.now) {
            this.now = now;
            this.abi.call.advance(now);
        }
        return this.now;
    }

    /** A deadline begins to depend on the clock, or ceases to. */
    watch(n) {
        this.#clock.watch(n);
    }

    /** A sleep that follows the host's time; see Clock. */
    slept(sleep) {
        return this.#clock.slept(sleep);
    }

    /** The time after so many nanoseconds; 0 if there is no such span, for ever if it is too long. */
    deadline(span) {
        const now = this.clock();
        if (span === undefined) return 0n;
        const due = now + span;
        return due > FOREVER ? FOREVER : due === 0n ? 1n : due;
    }

    openRegion(parent, owner, options = {}, asker) {
        const { abi, slots } = this;
        const { name, signal, timeout, priority, flags } = regionOptions(options);
        parent.admits(`region ${name}`);
        const due = this.deadline(timeout);
        const site = abi.site(name);
        const region = new Region(this, parent, name, (flags & 1) !== 0);
        const slot = slots.take(region);
        const id = abi.call.region_open(owner === undefined ? 0n : owner.id, parent.id, flags, due, priority, slot, site);
        const admitted = this.admit(id, slot, region, `region ${name} in ${parent.name}`, asker ?? parent);
        region.admitted(admitted, slot, signal, timeout);
        if (due !== 0n) this.schedule(); /* there is a timer to be set */
        return region;
    }

    /**
     * The id that a constructor returned, or its error; then the slot is free again. `asker` is the cx that asked, or
     * the region that was asked. A region that is cancelled refuses with what cancelled it: who asks is most often one
     * of its tasks, and JavaScript does not tell.
     */
    admit(id, slot, item, what, asker) {
        const status = this.abi.call.id_status(id);
        if (status === STATUS.OK) return u64(id);
        this.slots.give(slot, item);
        throw this.refusal(status, what, asker);
    }

    refusal(status, what, asker) {
        const refused = status === STATUS.CANCELLED || status === STATUS.CLOSED;
        const reason = refused && !this.#flushed ? asker.reason() : undefined;
        if (reason !== undefined) return reason;
        const hint = status === STATUS.CLOSED ? ' (to wait for what runs and go on admitting, use join(), not close())' : '';
        return this.abi.error(status, what, hint);
    }

    verb(name, region) {
        if (this.#crash !== undefined) return;
        if (region === this.root) this.rootEnds();
        this.clock();
        this.abi.call[name](0n, region.id);
        this.schedule();
    }

    /** Cancels a task or a region. */
    cancelTarget(target, reason) {
        if (this.#crash !== undefined) return;
        const { kind, message, within, polls } = reasonOf(reason);
        const cause = isError(reason) && !(reason instanceof Cancelled) ? reason : undefined;
        const { call } = this.abi;
        const number = this.abi.cancelKind(kind);
        const budget = this.#budget(within, polls, target);
        if (target === this.root) this.rootEnds();
        if (cause !== undefined && target.epoch === 0) target.cause = cause;
        this.clock();
        this.abi.say(message);
        if (!(target instanceof Region)) call.task_cancel(0n, target.id, number);
        else if (budget === undefined) call.region_cancel(0n, target.id, number);
        else call.region_cancel_within(0n, target.id, number, budget.deadline, budget.polls);
        this.schedule();
    }

    /** A budget of the caller's own, instead of the table's. */
    #budget(within, polls, target) {
        if (within === undefined && polls === undefined) return undefined;
        if (!(target instanceof Region)) {
            throw new TypeError('cancel of a task: within and polls are for regions; a task has the budget of its kind');
        }
        return {
            deadline: within === undefined ? FOREVER : this.deadline(nanoseconds(within, 'within')),
            polls: polls === undefined ? 0xffffffff : integer(polls, 0xfffffffe, 'polls'),
        };
    }

    /** Cancels `target` when the signal aborts. The returned function takes it back. */
    link(signal, target) {
        return this.#links.add(signal, target);
    }

    /** The signal's reason is the cause of what follows, unless that was cancelled before. */
    #abort(target, reason) {
        if (target.ended || this.#crash !== undefined) return;
        if (target.epoch === 0) target.cause = reason;
        this.cancelTarget(target, reasonOfAbort(reason));
    }

    /** The root is to close: looks for its end after each batch. */
    rootEnds() {
        this.#closing = true;
    }

    /** The task's budget is over: it is polled again in the next turn. */
    overdue(task) {
        this.#overdue.add(task);
        this.#channel.post(true);
    }

    /** Calls `fn` in a later turn of the host's loop, also when the runtime has ended. */
    nextTurn(fn) {
        this.#host.setTimeout(fn, 0);
    }

    /** Something that the task waits for has come. One that is polled in the next turn hears of it then. */
    wakeWaiter(task) {
        if (!this.#overdue.has(task)) this.wake(task.id);
    }

    /** Runs a hook. One that is to run inside another runs after it: they may be a list of any length. */
    runHook(hook) {
        this.#hooks.push(hook);
        if (this.#hooks.length > 1) return;
        for (let i = 0; i < this.#hooks.length; i++) safely(this.#hooks[i]);
        this.#hooks = [];
    }

    /** Calls `fn` when no poll runs: now, or after this batch. */
    afterBatch(fn) {
        if (this.#pumping) this.#late.push(fn);
        else fn();
    }

    /* ---- the pump --------------------------------------------------------------------------------------- */

    /** A message or a timer of ours has come. */
    #newTurn() {
        this.#turn += 1n;
        this.#batch = 0n;
        this.#turnBegan = undefined;
        this.#turnPolls = 0;
        if (this.#crash !== undefined || this.root.ended) return;
        this.abi.call.turn(this.#turn, this.#batch + 1n);
        this.#wakeOverdue();
        if (this.#byMessage) this.#run();
    }

    #wakeOverdue() {
        const overdue = this.#overdue;
        this.#overdue = new Set();
        for (const task of overdue) if (!task.ended) this.wake(task.id);
    }

    /** Runs the pump soon, never now. */
    schedule() {
        if (this.#scheduled || this.#pumping || this.#crash !== undefined || this.root.ended) return;
        this.#scheduled = true;
        this.#byMessage = this.#spent();
        if (this.#byMessage) this.#channel.post(true);
        else this.#host.queueMicrotask(() => this.#run());
    }

    #spent() {
        if (this.#turnBegan === undefined) return false;
        return this.#turnPolls >= TURN_POLLS || this.#host.now() - this.#turnBegan >= TURN_MS;
    }

    #run() {
        this.#scheduled = this.#byMessage = false;
        if (this.#crash !== undefined || this.root.ended) return;
        this.#pumping = true;
        try {
            this.#pump();
        } catch (error) {
            if (this.#crash === undefined) raise(error); /* else the crash has reported it */
        } finally {
            this.#pumping = false;
        }
        if (this.#crash === undefined) this.#after();
    }

    #afterThat() {
        const late = this.#late;
        this.#late = [];
        late.forEach(safely);
    }

    #pump() {
        const { call } = this.abi;
        if (this.#turnBegan === undefined) {
            this.#turnBegan = this.#host.now();
            this.#channel.post(false);
        }
        this.#batch += 1n;
        this.clock();
        call.turn(this.#turn, this.#batch);
        const polls = Math.min(BATCH_POLLS, Math.max(1, call.runnable()));
        call.pump(polls);
        this.#turnPolls += polls;
    }

    /** More to do now, later, or never again. */
    #after() {
        this.#afterThat();
        this.clock(); /* a batch may have taken long */
        const due = u64(this.abi.call.next_due());
        if (this.#closing && this.#rootClosed()) return;
        if (due <= this.now) this.schedule();
        else this.#setTimer(due);
    }

    #setTimer(due) {
        const { tickMs } = this.#clock;
        if (due === this.#timerDue && tickMs === this.#timerMs) return;
        this.#dropTimer();
        if (due === FOREVER) return;
        this.#timerDue = due;
        this.#timerMs = tickMs;
        const ms = Math.min(LONGEST_MS, tickMs, Math.ceil(Number(due - this.now) / 1e6));
        const set = this.#timer = this.#host.setTimeout(() => {
            if (set !== this.#timer) return; /* one that nobody could take back */
            this.#timerDue = FOREVER;
            this.#newTurn();
            if (!this.#scheduled) this.#run();
        }, ms);
    }

    #dropTimer() {
        if (this.#timerDue !== FOREVER) this.#host.clearTimeout?.(this.#timer);
        this.#timer = undefined;
        this.#timerDue = FOREVER;
    }

    /** Lets go of what it has of the host. */
    #shut() {
        this.#dropTimer();
        this.#channel.close();
        this.#host.page?.removeEventListener('pagehide', this.#leave);
    }

    #rootClosed() {
        const info = this.regionInfo(this.root.id);
        if (info.state !== 'Closed') return false;
        this.#shut();
        const status = info.status === 'EBB_OK' ? STATUS.OK : info.status === 'EBB_CANCELLED' ? STATUS.CANCELLED
            : STATUS.FAILED;
        this.root.over(status, this.#report(this.root.id, info.abandoned, info.leaked));
        return true;
    }

    /** Who did not end as it should: how many, finalizers too, and the first of them by name. */
    #report(region, abandoned, leaked) {
        return {
            abandoned: this.#blames(region, 0, abandoned),
            leaked: this.#blames(region, 1, leaked),
            counts: { abandoned, leaked },
        };
    }

    /* ---- what the kernel calls -------------------------------------------------------------------------- */

    /** None of these throws: that would unwind over frames of the kernel. */
    #callbacks() {
        const { slots } = this;
        const guard = (fn, otherwise) => (a, b, c, d) => {
            try {
                return fn(a, b, c, d);
            } catch (error) {
                raise(error); /* a bug of ours: heard, and the task that met it has faulted */
                return otherwise;
            }
        };
        return {
            poll: guard((slot, signal) => slots.at(slot).poll(signal), STATUS.FAULTED),
            finalize: guard((slot, signal, task) => slots.at(slot).finalize(signal, u64(task)), STATUS.FAULTED),
            ended: guard((slot, status) => slots.at(slot).over(status, this.#lastWitness())),
            aborted: guard((slot) => slots.at(slot).aborted()),
            closed: guard((slot, status, abandoned, leaked) => {
                const region = slots.at(slot);
                region.over(status, this.#report(region.id, abandoned, leaked));
            }),
            bytes: guard((what, at, n) => this.#taken[what].push(this.abi.bytes(at, n).slice())),
        };
    }

    #blames(region, what, n) {
        return Array.from({ length: Math.min(n, BLAMES) }, (_, i) => {
            if (this.abi.call.region_work(region, what, i) < 0) return undefined;
            const w = this.abi.words();
            return { id: w.u64(), site: this.abi.text(w.u32()) };
        }).filter((work) => work !== undefined);
    }

    #take(what) {
        const pieces = this.#taken[what];
        const all = new Uint8Array(pieces.reduce((n, piece) => n + piece.length, 0));
        let at = 0;
        for (const piece of pieces) {
            all.set(piece, at);
            at += piece.length;
        }
        this.#taken[what] = [];
        return all;
    }

    /** The instance is not to be trusted any more: saves what it recorded, and tells everybody who waits. */
    #trapped(error) {
        if (this.#crash !== undefined) return this.#crash.error;
        const trap = new EbbError('EBB_TRAPPED', `the runtime trapped and is gone: ${error.message}`, { cause: error });
        this.#crash = { error: trap, trace: new Uint8Array(), journal: new Uint8Array() };
        for (const [name, what, call] of [['trace', 0, 'take_trace'], ['journal', 1, 'take_journal']]) {
            try {
                this.abi.call[call](1);
            } catch {
                /* what was handed over before it is kept */
            }
            this.#crash[name] = this.#take(what);
        }
        this.#shut();
        this.#host.queueMicrotask(() => {
            this.#afterThat(); /* some had ended just before */
            [...this.slots.all(), this.root].forEach((each) => each.lost?.(trap));
        });
        return trap;
    }
}

/** An id that can't be refused. */
function isMine(id, runtime) {
    return id >> 56n === BigInt(runtime) && (id & 0xffffffffn) !== 0n;
}

function idText(id) {
    return `${id >> 56n}.${id >> 32n & 0xffffffn}.${id & 0xffffffffn}`;
}

/** Ids are BigInts: as a Number one would be another id, silently. */
function checkId(id, what) {
    if (typeof id === 'bigint' && id >= 0n && id <= FOREVER) return id;
    throw new TypeError(`the id of a ${what} is a BigInt of 64 bits; found ${typeof id} ${printable(id)}`);
}
