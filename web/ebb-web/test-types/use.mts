/** Uses everything that index.d.ts declares, as a program would. It is type-checked, not run. */
import {
    Cancelled, Cx, EbbError, Host, hostOf, Obligation, Region, Report, Runtime, Task, TraceEvent, TraceReader,
    Witness,
} from 'ebb-web';
import type {
    Work, CancelEventType, CancelKind, Causes, CleanupBudget, Crash, Cut, ErrorCode, EventType, HostChannel, Lane,
    ObligationKind, Phase, Reason, RegionInfo, RegionOptions, RegionReason, RegionState, RuntimeOptions,
    Severity, Stats,
    TaskInfo, TaskOptions, ToldKind,
} from 'ebb-web';

const bare: Host = { queueMicrotask, MessageChannel, setTimeout, now: () => performance.now() };
const whole: Host = { ...bare, clearTimeout, fetch };
const budget: CleanupBudget = { ms: 100, polls: 10 };
const options: RuntimeOptions = { trace: 1 << 20, journal: 0,
    cleanup: { polite: budget, urgent: {}, forced: { polls: 5 } } };
const rt = new Runtime(hostOf(globalThis), options);
new Runtime(whole);
new Runtime(bare, { module: new WebAssembly.Module(new Uint8Array()) });
const channel: HostChannel = new bare.MessageChannel();
channel.port2.postMessage(0);

async function work(cx: Cx): Promise<number> {
    cx.checkpoint();
    const kept: string = await cx.mask(async (inner) => {
        await inner.sleep(10);
        return 'kept';
    });
    const plain: number = await cx.mask(() => 5);
    const lease: Obligation = cx.reserve('lease', () => console.log('given back'));
    if (!lease.resolved) lease.commit();
    cx.reserve('io').abort();
    cx.defer(async () => {
        await cx.sleep(1);
    });
    const own: Region = cx.region({ collect: true, name: 'own' });
    own.spawn(() => 1);
    await cx.wait(own.join());
    await cx.yield();
    const waited: string = await cx.wait(Promise.resolve('text'));
    const click: MouseEvent = await cx.once<MouseEvent>(document.body, 'click', { passive: true });
    const stop: () => void = cx.on<KeyboardEvent>(window, 'keydown', (event) => console.log(event.key), true);
    stop();
    const response: Response = await cx.fetch(new URL('https://example.org'),
        { method: 'POST', signal: cx.signal });
    await cx.fetch('/', null);
    if (cx.cancelled || cx.stopping || cx.asked) console.log(cx.reason()?.kind);
    const task: Task = cx.task;
    return kept.length + plain + waited.length + click.clientX + response.status + task.epoch;
}

function look(task: Task<number>, region: Region): void {
    const witness: Witness = task.witness();
    const phase: Phase = witness.phase;
    const lane: Lane = rt.info(task.id).lane;
    const info: TaskInfo = rt.info(witness.task);
    const state: RegionState = region.info().state;
    const found: RegionInfo = rt.regionInfo(region.id);
    const causes: Causes = region.causes();
    const first: ToldKind | undefined = causes.links[0]?.kind;
    const severity: Severity = rt.witness(task.id).severity;
    const deadline: bigint = witness.budget.deadline + info.deadline + found.deadline;
    console.log(phase, lane, state, first, severity, deadline, rt.causes(region.id).truncated,
        region.parent?.name);
}

async function listen(cx: Cx, button: HTMLButtonElement, socket: WebSocket): Promise<void> {
    const x: number = (await cx.once(button, 'click')).clientX;
    const key: string = (await cx.once(window, 'keydown')).key;
    const said: MessageEvent = await cx.once(socket, 'message');
    const other: Event = await cx.once(new EventTarget(), 'of-my-own');
    const stop: () => void = cx.on(document, 'pointermove', (event) => console.log(event.pressure));
    stop();
    console.log(x, key, said.data, other.type);
}

export async function disposed(): Promise<Report> {
    await rt.region()[Symbol.asyncDispose]();
    await rt[Symbol.asyncDispose]();
    console.log(listen, rt.flushed);
    const leaving = new Runtime({ ...hostOf(globalThis), page: window });
    const { forced }: Report = await leaving.flush();
    forced.map(({ site, region, abandoned }: Cut): string => `${site} in ${region} ${abandoned}`);
    return rt.flush();
}

function report({ status, abandoned, leaked, counts, failures, suppressed }: Report): void {
    const names: (string | undefined)[] = [...abandoned, ...leaked].map((work: Work) => work.site);
    console.log(status === 'failed', names, counts.abandoned + counts.leaked, failures, suppressed.length);
}

function complain(error: unknown): void {
    if (error instanceof Cancelled) {
        const kind: CancelKind | 'PARENT' = error.kind;
        const name: 'AbortError' | 'TimeoutError' = error.name;
        console.log(kind, name, error.severity, error.epoch, error.reason, error.cause, error.message);
    } else if (error instanceof EbbError) {
        const code: ErrorCode = error.code;
        if (code === 'EBB_TRAPPED') save(rt.crash);
    }
}

function save(crash: Crash | undefined): void {
    if (crash === undefined) return;
    const events: TraceEvent[] = new TraceReader(rt).push(crash.trace);
    console.log(crash.error.code, crash.journal.byteLength, events.length);
}

const CANCEL: CancelEventType[] = ['cancel_requested', 'cancel_acked'];

function eight(event: TraceEvent): unknown[] {
    const type: EventType = event.type;
    const isCancel: boolean = (CANCEL as EventType[]).includes(type);
    return [isCancel, event.taskId, event.regionId, event.cancelEpoch, event.cancelPhase, event.cancelKind,
        event.decisionSeq, event.hostTurnId, event.microtaskBatchId, event.severity, event.time, event.value,
        event.status,
        event.other, event.text];
}

export async function main(): Promise<void> {
    const controller = new AbortController();
    const common: RegionOptions & TaskOptions = { name: 'main', signal: controller.signal, timeout: 1000,
        priority: 3 };
    const region = rt.region({ ...common, collect: true });
    const task: Task<number> = region.spawn(work, { ...common, polls: 100 });
    const sync: Task<string> = region.spawn(() => 'text');
    const won: number | string = await region.race([work, () => 'first'], { timeout: 50 });
    const mixed: number | boolean | Response = await region.race([
        async (cx) => (await cx.fetch('/')).clone(), async () => true, () => 1,
    ]);
    const text: string = await sync.result;
    const polite: Reason = { kind: 'DISCONNECT', message: 'gone' };
    const urgent: RegionReason = { kind: 'SHUTDOWN', within: 100, polls: 10 };
    task.cancel(polite);
    task.cancel('text');
    task.cancel(new Error('error'));
    task.force();
    region.defer(async (cx) => cx.sleep(1));
    const held: Obligation = region.reserve('lease', () => {});
    held.commit();
    region.cancel(urgent);
    region.cancel();
    region.force();
    look(task, region);
    rt.wake(task.id);
    try {
        console.log(await task.result, won, mixed, text, task.ended, task.region.epoch, region.reason()?.severity);
    } catch (error) {
        complain(error);
    }
    report(await region.join());
    report(await region.close());
    report(await region.done);
    const stats: Stats = rt.stats();
    console.log(stats.worstWait.cancel + stats.memoryBytes + stats.staleWakes, rt.dump(), rt.now, rt.id,
        rt.root.id);
    rt.events().map(eight);
    const bytes: Uint8Array = rt.takeTrace({ flush: true });
    console.log(bytes.length, rt.takeJournal().length, region.region().ended);
    const kinds: ObligationKind[] = ['permit', 'ack', 'lease', 'fence', 'io', 'transaction'];
    console.log(kinds);
    if (region.report !== undefined) report(region.report);
    const passedOn: { signal?: AbortSignal; timeout?: number } = {};
    rt.region({ signal: passedOn.signal, timeout: passedOn.timeout, name: undefined });
    rt.cancel({ kind: undefined, message: 'bye' });
    report(await rt.close());
}

import { Runtime as CoreRuntime, Region as CoreRegion } from 'ebb-web/core';

export function core(module: WebAssembly.Module): Runtime {
    const region: CoreRegion = new CoreRuntime(hostOf(globalThis), { module }).region();
    const same: Region = region;
    console.log(same.name);
    return new CoreRuntime(hostOf(globalThis), { module, trace: 1 << 20 });
}
