/*
 * Every fixture as somebody would write it who has the package and no script: async functions in regions. What a
 * script says with `pump N`, to stop between two steps of a task, is a promise here that the task waits for.
 */

/** A promise that somebody else keeps. */
function later() {
    let keep;
    const promise = new Promise((resolve) => (keep = resolve));
    return Object.assign(promise, { keep });
}

/** Waits until the task is asked to stop: a script's `park`. */
function park(cx) {
    return cx.wait(later());
}

function expect(is, what) {
    if (!is) throw new Error(`expected ${what}`);
}

/** The call must throw an error of that code or name. */
function refused(call, why) {
    try {
        call();
    } catch (error) {
        expect((error.code ?? error.name) === why, `a refusal with ${why}, not ${error.code ?? error.name}`);
        return;
    }
    throw new Error(`expected a refusal with ${why}`);
}

/**
 * One task, one cancel in a later turn, one checkpoint. What the script's task also tries, to pump from
 * inside its own poll, no function of the package can ask for.
 */
async function singleTaskCheckpoint(stage) {
    const job = stage.open('job');
    const goOn = later();
    const worker = stage.spawn(job, 'worker', async (cx) => {
        for (let i = 0; ; i++) {
            cx.checkpoint();
            await (i < 3 ? cx.yield() : goOn);
        }
    });
    await stage.turn();
    job.cancel({ kind: 'USER', message: 'abort signal' });
    await stage.turn();
    expect(worker.witness().phase === 'CancelRequested', 'a request that waits for a checkpoint');
    goOn.keep();
    await job.close();
}

/** The mask holds across an await; the first checkpoint after it acknowledges. */
async function maskedDeferral(stage) {
    const job = stage.open('job');
    const worker = stage.spawn(job, 'worker', async (cx) => {
        const write = stage.reserve(cx, 'write', 'transaction');
        await cx.mask(async () => {
            await cx.sleep(20);
            write.commit();
        });
        cx.checkpoint();
    });
    await stage.turn();
    job.cancel({ kind: 'TIMEOUT' });
    await stage.turn();
    expect(worker.witness().phase === 'CancelRequested', 'a request that waits for the mask');
    stage.clock.advance(20);
    await job.close();
}

/** Regions that tasks opened inside regions, cancelled level by level and closed from the inside. */
async function nestedCascade(stage) {
    const job = stage.open('job');
    const middle = async (cx) => {
        const inner = stage.open('inner', cx, { collect: true });
        stage.spawn(inner, 'leaf1', park);
        try {
            await cx.wait(inner.join());
        } catch (asked) {
            await cx.mask(() => inner.join());
            throw asked;
        }
    };
    stage.spawn(job, 'boss', async (cx) => {
        const nest = stage.open('nest', cx);
        stage.spawn(nest, 'mid', middle);
        await cx.wait(nest.join());
    });
    await stage.turn();
    job.cancel({ kind: 'DISCONNECT', message: 'the tab was closed' });
    stage.readChain('inner');
    await job.close();
}

/**
 * Wakes and a cancel race in one turn. The script's `yield` is no checkpoint; here every wait of `cx` is one,
 * so the winner awaits a promise of its own. A cancel of a task that has ended stops in the package, which
 * knows that: what comes late here are wakes.
 */
async function lateWakeRace(stage) {
    const [losers, winners] = [stage.open('losers'), stage.open('winners')];
    const [knock, finish] = [later(), later()];
    const quick = stage.spawn(losers, 'quick', (cx) => cx.wait(knock));
    const winner = stage.spawn(winners, 'winner', () => finish);
    await stage.turn();
    knock.keep();
    stage.rt.wake(quick.id);
    losers.cancel({ kind: 'RACE_LOST' });
    stage.rt.wake(quick.id);
    winners.cancel({ kind: 'RACE_LOST' });
    stage.rt.wake(winner.id);
    quick.result.catch(finish.keep); /* the regions close in the order of the script */
    await Promise.all([losers.close(), winners.close()]);
    const stale = stage.rt.stats().staleWakes;
    for (const task of [quick, winner]) stage.rt.wake(task.id);
    expect(stage.rt.stats().staleWakes === stale + 2, 'two wakes that came too late, counted');
}

/**
 * Obligations end as committed, aborted or leaked. The finalizers of a task run before its leaks are aborted, those
 * of a region before it closes; the region's own obligation holds it until its budget is over.
 */
async function obligationAndFinalizer(stage) {
    const job = stage.open('job');
    const side = stage.open('side', job);
    const helper = async (cx) => {
        const flush = stage.reserve(cx, 'flush', 'io');
        await cx.yield();
        flush.commit();
    };
    const release = async (cx) => {
        const scope = stage.open('scope', cx, { cleanup: true });
        stage.spawn(scope, 'help', helper);
        expect((await scope.join()).status === 'ok', 'a cleanup scope that ends well');
    };
    job.defer(() => {});
    job.defer((cx) => cx.yield());
    stage.reserve(job, 'fence1', 'fence');
    stage.spawn(job, 'worker', async (cx) => {
        const [sent, row] = [stage.reserve(cx, 'sent', 'ack'), stage.reserve(cx, 'row', 'lease')];
        stage.reserve(cx, 'slot', 'permit');
        cx.defer(() => {});
        cx.defer(release);
        try {
            await park(cx);
        } finally {
            sent.commit();
            row.abort();
        }
    });
    stage.spawn(side, 'bystander', park);
    await stage.turn();
    job.cancel({ kind: 'LEASE_LOST', message: 'another owner' });
    await stage.turn();
    expect(job.info().state === 'Finalizing', 'a region that its obligation holds');
    stage.clock.advance(1599);
    await stage.turn();
    expect(!job.ended, 'a region that is held until its budget is over, but for the fifth that is kept back');
    stage.clock.advance(1);
    const report = await job.close();
    expect(report.leaked.length === 2, 'both leaks in the report of the region');
    expect(String(stage.aborts) === 'row,slot,fence1', 'the hooks of what was aborted, once each');
}

/* ---- regions -------------------------------------------------------------------------------------------- */

/** A cascade, strengthened; a region beside it is not reached. */
async function cascade(stage) {
    const top = stage.open('top');
    const [left, right] = [stage.open('left', top), stage.open('right', top)];
    const leaf = stage.open('leaf', left);
    const aside = stage.open('aside');
    const finish = later();
    const parked = { a: top, b: left, c: right, d: leaf, d2: leaf };
    for (const [name, region] of Object.entries(parked)) stage.spawn(region, name, park);
    stage.spawn(aside, 'e', () => finish);
    await stage.turn();
    top.cancel({ kind: 'DISCONNECT', message: 'the peer has gone' });
    stage.readChain('leaf');
    top.cancel({ kind: 'SHUTDOWN', message: 'power' });
    stage.readChain('leaf');
    await top.close();
    finish.keep();
    await aside.close();
}

async function causeChainBounded(stage) {
    let region = stage.rt;
    for (let i = 1; i <= 27; i++) region = stage.open(`r${i}`, region);
    stage.spawn(region, 'deep', park);
    await stage.turn();
    const top = stage.region('r1');
    top.cancel({ kind: 'USER', message: 'the root cause' });
    for (const name of ['r24', 'r25', 'r27']) stage.readChain(name);
    await top.close();
}

async function noNewObligation(stage) {
    const job = stage.open('job');
    const helper = (cx) => stage.reserve(cx, 'inside', 'io').commit();
    stage.spawn(job, 'worker', async (cx) => {
        const [first, second] = [stage.reserve(cx, 'first', 'ack'), stage.reserve(cx, 'second', 'lease')];
        try {
            await park(cx);
        } finally {
            refused(() => cx.reserve('permit'), 'AbortError');
            await cx.mask(() => stage.reserve(cx, 'kept', 'permit').commit());
            first.commit();
            const scope = stage.open('scope', cx, { cleanup: true });
            stage.spawn(scope, 'help', helper);
            await cx.mask(() => scope.join());
            second.abort();
        }
    });
    const shared = stage.reserve(job, 'shared', 'fence');
    await stage.turn();
    job.cancel({ kind: 'USER' });
    refused(() => job.reserve('transaction'), 'AbortError');
    shared.commit();
    refused(() => shared.commit(), 'EBB_ERR_RESOLVED');
    await job.close();
}

/** The package has no units of work: `sub` is a plain region, and refuses as the script's unit does. */
async function noNewSpawn(stage) {
    const job = stage.open('job');
    const sub = stage.open('sub', job);
    stage.spawn(job, 'worker', async (cx) => {
        try {
            await park(cx);
        } finally {
            refused(() => job.spawn(() => {}), 'AbortError');
            refused(() => cx.region(), 'AbortError');
            const scope = stage.open('scope', cx, { cleanup: true });
            stage.spawn(scope, 'help', (help) => help.yield());
            await cx.mask(() => scope.join());
        }
    });
    await stage.turn();
    job.cancel({ kind: 'USER' });
    for (const region of [job, sub]) refused(() => region.spawn(() => {}), 'AbortError');
    refused(() => job.region(), 'AbortError');
    refused(() => job.region({ cleanup: true }), 'EBB_ERR_NOT_CLEANING');
    await job.close();
}

/* ---- the scheduler -------------------------------------------------------------------------------------- */

/** A wake that waits when the cancel comes moves with its task into the cancel lane. */
async function cancelLane(stage) {
    const [job, other] = [stage.open('job'), stage.open('other')];
    const [first, second, third, go] = [later(), later(), later(), later()];
    stage.spawn(other, 'busy', async (cx) => {
        await first;
        await cx.yield();
        await second;
        await third;
    });
    const worker = stage.spawn(job, 'worker', async (cx) => {
        await cx.mask(() => go);
        cx.checkpoint();
    });
    await stage.turn();
    first.keep();
    stage.rt.wake(worker.id);
    job.cancel({ kind: 'USER' });
    expect(stage.rt.info(worker.id).lane === 'cancel', 'a pending wake that has moved to the cancel lane');
    go.keep();
    await stage.turn();
    second.keep();
    const long = stage.open('long');
    stage.spawn(long, 'cleaner', async (cx) => {
        await park(cx).catch(() => {});
        for (let i = 0; i < 11; i++) await cx.yield().catch(() => {});
    });
    await stage.turn();
    third.keep();
    long.cancel({ kind: 'USER' });
    await Promise.all([job.close(), long.close()]);
    await other.close();
}

async function lateWake(stage) {
    const job = stage.open('job', stage.rt, { collect: true });
    const finish = later();
    const first = stage.spawn(job, 'first', (cx) => cx.sleep(50));
    await stage.turn();
    stage.rt.wake(first.id);
    first.cancel({ kind: 'USER' });
    await stage.turn();
    stage.rt.wake(first.id);
    const second = stage.spawn(job, 'second', () => finish);
    await stage.turn();
    stage.rt.wake(first.id);
    first.cancel({ kind: 'SHUTDOWN' });
    first.force();
    stage.clock.advance(100);
    await stage.turn();
    finish.keep();
    await stage.turn();
    stage.rt.wake(second.id);
    expect(stage.rt.stats().staleWakes === 3, 'three wakes that came too late, counted');
    refused(() => stage.rt.wake(0n), 'EBB_ERR_INVALID');
    await job.close();
}

/* ---- tasks ---------------------------------------------------------------------------------------------- */

async function budgetCombine(stage) {
    const job = stage.open('job');
    const worker = stage.spawn(job, 'worker', (cx) => cx.mask(() => park(cx)));
    await stage.turn();
    const cancel = (name, reason) => {
        job.cancel(reason);
        stage.witness(worker, name);
    };
    cancel('first', { kind: 'USER', within: 1000, polls: 100 });
    cancel('fewer', { kind: 'USER', within: 2000, polls: 50 });
    stage.check('first', 'fewer');
    stage.check('fewer', 'first');
    cancel('sooner', { kind: 'USER', within: 400, polls: 80 });
    stage.check('fewer', 'sooner');
    stage.check('sooner', 'fewer');
    stage.clock.advance(100);
    cancel('urgent', { kind: 'TIMEOUT' });
    stage.check('sooner', 'urgent');
    worker.cancel({ kind: 'SHUTDOWN' });
    cancel('last', { kind: 'SHUTDOWN', within: 600, polls: 10 });
    stage.check('urgent', 'last');
    stage.clock.advance(300);
    await job.close();
}

async function reasonStrengthen(stage) {
    const job = stage.open('job');
    const worker = stage.spawn(job, 'worker', (cx) => cx.mask(() => park(cx)));
    await stage.turn();
    const cancel = (kind, message, name) => {
        job.cancel({ kind, message });
        stage.witness(worker, name);
    };
    cancel('USER', 'first', 'polite');
    cancel('DISCONNECT', 'second', 'same');
    stage.check('polite', 'same');
    stage.check('same', 'polite');
    cancel('TIMEOUT', 'third', 'urgent');
    stage.check('same', 'urgent');
    stage.check('urgent', 'same');
    worker.cancel({ kind: 'RACE_LOST', message: 'weaker' });
    cancel('USER', 'fourth', 'stays');
    stage.check('urgent', 'stays');
    cancel('SHUTDOWN', 'last', 'forced');
    stage.check('stays', 'forced');
    cancel('TIMEOUT', 'too weak', 'end');
    stage.check('forced', 'end');
    stage.readChain('job');
    job.force();
    await job.close();
}

async function cleanupToFinalizing(stage) {
    const job = stage.open('job');
    const [cleaned, finalized] = [later(), later()];
    const worker = stage.spawn(job, 'worker', async (cx) => {
        cx.defer(() => {});
        cx.defer(async () => {
            await cx.yield();
            await cx.yield();
        });
        cx.defer(() => finalized);
        await park(cx).catch(() => {});
        await cleaned;
    });
    await stage.turn();
    job.cancel({ kind: 'TIMEOUT', message: 'too late' });
    await stage.turn();
    expect(worker.witness().phase === 'Cancelling', 'a task that cleans up');
    cleaned.keep();
    await stage.turn();
    stage.witness(worker, 'finalizing');
    expect(worker.witness().phase === 'Finalizing', 'a task whose finalizers run');
    finalized.keep();
    stage.witness(worker, 'still');
    stage.check('finalizing', 'still');
    await job.close();
}

async function completedAbsorbing(stage) {
    const job = stage.open('job');
    const worker = stage.spawn(job, 'worker', () => {});
    stage.spawn(job, 'loser', park);
    await stage.turn();
    stage.witness(worker, 'ended');
    worker.cancel({ kind: 'USER' });
    worker.force();
    stage.rt.wake(worker.id);
    expect(stage.rt.stats().staleWakes === 1, 'a wake that came too late, counted');
    stage.witness(worker, 'later');
    stage.check('ended', 'later');
    stage.check('later', 'ended');
    job.cancel({ kind: 'SHUTDOWN' });
    stage.witness(worker, 'after');
    stage.check('later', 'after');
    await job.close();
    await worker.result;
}

async function maskedDefersAck(stage) {
    const job = stage.open('job');
    const [inner, outer] = [later(), later()];
    const worker = stage.spawn(job, 'worker', async (cx) => {
        await cx.mask(async () => {
            await cx.mask(async () => {
                await inner;
                cx.checkpoint();
            });
            cx.checkpoint();
            await outer;
        });
        cx.checkpoint();
    });
    const masked = () => [worker.witness().phase, stage.rt.info(worker.id).mask].join();
    await stage.turn();
    job.cancel({ kind: 'USER' });
    await stage.turn();
    expect(masked() === 'CancelRequested,2', 'a request that waits for two masks');
    inner.keep();
    await stage.turn();
    expect(masked() === 'CancelRequested,1', 'a request that waits for the outer mask');
    outer.keep();
    await job.close();
}

async function requestToAck(stage) {
    const job = stage.open('job');
    const finish = later();
    const worker = stage.spawn(job, 'worker', async (cx) => {
        try {
            await park(cx);
        } finally {
            await finish;
        }
    });
    await stage.turn();
    job.cancel({ kind: 'USER', message: 'closed by the operator' });
    stage.witness(worker, 'requested');
    await stage.turn();
    stage.witness(worker, 'acked');
    stage.check('requested', 'acked');
    finish.keep();
    await job.close();
}

async function witnessPhases(stage) {
    const [job, aside] = [stage.open('job'), stage.open('aside')];
    const [cleaned, finalized] = [later(), later()];
    const worker = stage.spawn(job, 'worker', async (cx) => {
        cx.defer(() => finalized);
        await park(cx).catch(() => {});
        await cleaned;
    });
    const next = async (name, act = () => {}) => {
        act();
        await stage.turn();
        stage.witness(worker, name);
    };
    stage.witness(worker, 'created');
    await next('running');
    job.cancel({ kind: 'USER' });
    stage.witness(worker, 'requested');
    await next('cancelling');
    job.cancel({ kind: 'DISCONNECT' });
    stage.witness(worker, 'again');
    stage.check('cancelling', 'again');
    await next('finalizing', cleaned.keep);
    job.cancel({ kind: 'TIMEOUT' });
    stage.witness(worker, 'urgent');
    stage.check('finalizing', 'urgent');
    await next('completed', finalized.keep);
    const other = stage.spawn(aside, 'other', () => {});
    stage.witness(other, 'stranger');
    const pairs = 'created running, running requested, requested cancelling, cancelling finalizing, finalizing completed, '
        + 'created completed, completed completed, running created, requested running, cancelling requested, '
        + 'finalizing cancelling, completed finalizing, created stranger, completed stranger';
    for (const pair of pairs.split(', ')) stage.check(...pair.split(' '));
    await Promise.all([job.close(), aside.close()]);
}

export const SCENARIOS = {
    'cancel.region.cascade_parent_before_child': cascade,
    'cancel.region.cause_chain_bounded': causeChainBounded,
    'cancel.region.no_new_obligation_after_cancel': noNewObligation,
    'cancel.region.no_new_spawn_after_cancel': noNewSpawn,
    'cancel.scheduler.cancel_lane_routing_on_pending_wake': cancelLane,
    'cancel.scheduler.late_wake_nonpanic': lateWake,
    'cancel.task.budget_combine_monotone': budgetCombine,
    'cancel.task.cleanup_to_finalizing_to_completed_cancelled': cleanupToFinalizing,
    'cancel.task.completed_absorbing': completedAbsorbing,
    'cancel.task.masked_defers_ack': maskedDefersAck,
    'cancel.task.reason_strengthen_monotone': reasonStrengthen,
    'cancel.task.request_to_ack_when_unmasked': requestToAck,
    'cancel.task.witness_phase_monotone': witnessPhases,
    'parity.single_task_checkpoint': singleTaskCheckpoint,
    'parity.masked_deferral': maskedDeferral,
    'parity.nested_cascade': nestedCascade,
    'parity.late_wake_race': lateWakeRace,
    'parity.obligation_and_finalizer': obligationAndFinalizer,
};
