/**
 * Random programs: a seed says what regions and tasks there are, what each of them does, and what the host
 * does to them meanwhile. The same seed is the same program on the same virtual host, step by step.
 */
import assert from 'node:assert/strict';

import { Cancelled, Runtime } from '../index.js';
import { assertFollows, KINDS } from './contract.js';
import { VirtualHost } from './virtual-host.js';

const OBLIGATIONS = ['permit', 'ack', 'lease', 'fence', 'io', 'transaction'];
const MOST_TASKS = 60;
const REFUSALS = /CLOSED|STALE|RESOLVED|NOT_CLEANING|MASK_DEPTH/;

/** Numbers that look random: xorshift32. */
export class Chance {
    #state;

    constructor(seed) {
        this.#state = Math.imul(seed + 1, 0x9e3779b1) | 1;
    }

    below(n) {
        let x = this.#state;
        x ^= x << 13;
        x ^= x >>> 17;
        x ^= x << 5;
        this.#state = x;
        return (x >>> 0) % n;
    }

    percent(n) {
        return this.below(100) < n;
    }

    pick(list) {
        return list[this.below(list.length)];
    }
}

export class Program {
    tasks = [];
    regions = [];
    gates = [];
    target = new EventTarget();
    witnesses = new Map();

    constructor(seed, options = {}) {
        this.chance = new Chance(seed);
        this.host = new VirtualHost();
        this.rt = new Runtime(this.host.capabilities, {
            trace: 1 << 18, cleanup: { polite: { ms: 60 }, urgent: { ms: 30 }, forced: { ms: 15 } },
            ...options,
        });
    }

    /** Runs all of it, to the end of the runtime. */
    async run() {
        const steps = 10 + this.chance.below(30);
        this.open(this.rt.root);
        for (let i = 0; i < steps; i++) {
            this.hostStep();
            this.look();
            for (let n = this.chance.below(6); n > 0 && await this.host.step(); n--) this.look();
            if (this.chance.percent(40)) await this.host.pass(this.chance.below(25));
            this.look();
        }
        await this.end();
    }

    async end() {
        const { chance, host, rt } = this;
        this.gates.forEach((open) => open());
        if (chance.percent(50)) rt.root.cancel({ kind: chance.pick(Object.keys(KINDS)) });
        const closed = rt.close().catch(() => {});
        await host.settle();
        this.look();
        if (!rt.root.ended) rt.root.cancel({ kind: 'SHUTDOWN', message: 'the end of the program' });
        await host.finish();
        this.look();
        await Promise.race([closed, host.settle()]);
    }

    /** No witness may go back in anything. */
    look() {
        for (const task of this.tasks) {
            const before = this.witnesses.get(task.id);
            if (before?.phase === 'Completed') continue;
            const now = task.witness();
            if (before !== undefined) assertFollows(before, now);
            this.witnesses.set(task.id, now);
        }
    }

    sometimes(most) {
        return this.chance.percent(15) ? this.chance.below(most) : undefined;
    }

    open(parent, options = {}) {
        const region = parent.region({
            collect: this.chance.percent(50), timeout: this.sometimes(60), ...options,
        });
        region.done.catch(() => {});
        this.regions.push(region);
        return region;
    }

    spawn(region) {
        if (this.tasks.length >= MOST_TASKS) return;
        const { chance } = this;
        const options = {
            timeout: this.sometimes(60), polls: chance.percent(10) ? 1 + chance.below(20) : 0,
            priority: chance.below(3),
        };
        this.tasks.push(region.spawn((cx) => this.body(cx, 3), options));
    }

    /** One thing that a host may do. Work that is refused is no mistake: regions close. */
    hostStep() {
        const { chance, host, rt } = this;
        const open = this.regions.filter(({ ended }) => !ended);
        const region = chance.pick(open.length > 0 ? open : this.regions);
        const task = this.tasks.length > 0 ? chance.pick(this.tasks) : undefined;
        const reason = { kind: chance.pick(Object.keys(KINDS)), message: `step at ${host.time}` };
        const spawn = () => this.spawn(region);
        const acts = [
            spawn, spawn, spawn, spawn, spawn, spawn, spawn, spawn,
            () => this.open(rt.root), () => this.open(rt.root), () => this.open(region),
            () => this.open(region),
            () => task?.cancel(reason), () => task?.cancel(reason), () => region.cancel(reason),
            () => region.cancel({ ...reason, within: chance.below(50), polls: chance.below(40) }),
            () => (chance.percent(30) ? region.force() : task?.force()), () => void region.close(),
            () => void region.join(),
            () => task && rt.wake(task.id), () => this.gates.pop()?.(),
            () => this.target.dispatchEvent(new Event('go')), () => rt.dump(),
        ];
        refused(() => {
            try {
                return chance.pick(acts)();
            } catch (error) {
                if (!(error instanceof Cancelled)) throw error; /* the region is cancelled, and refuses with that */
            }
        });
    }

    /** What a task does. */
    async body(cx, depth) {
        const { chance } = this;
        const steps = 1 + chance.below(4);
        try {
            for (let i = 0; i < steps; i++) await this.bodyStep(cx, depth);
        } catch (error) {
            if (chance.percent(30)) await this.cleanUp(cx, depth);
            if (chance.percent(90)) throw error;
        }
        return chance.below(1000);
    }

    bodyStep(cx, depth) {
        const { chance } = this;
        const acts = [
            () => cx.sleep(chance.below(20)), () => cx.sleep(chance.below(20)), () => cx.yield(),
            () => cx.checkpoint(),
            () => this.oblige(cx), () => this.finalize(cx), () => this.spawn(cx.task.region),
            () => cx.wait(this.gate()), () => cx.once(this.target, 'go'),
            () => chance.percent(30) && this.gate(), () => this.hostStep(),
        ];
        if (chance.percent(3)) return new Promise(() => {});
        if (chance.percent(4)) throw new Error('a task that fails');
        if (depth > 0) {
            acts.push(() => cx.mask(() => this.body(cx, depth - 1)), () => this.own(cx, depth - 1),
                () => this.race(cx, depth - 1));
        }
        return refused(() => chance.pick(acts)());
    }

    gate() {
        return new Promise((resolve) => {
            this.gates.push(resolve);
        });
    }

    oblige(cx) {
        const { chance } = this;
        const obligation = cx.reserve(chance.pick(OBLIGATIONS), () => chance.percent(20) && this.hostStep());
        const fate = chance.below(10);
        if (fate < 4) obligation.commit();
        else if (fate < 7) obligation.abort();
        else if (fate < 9) cx.defer(() => refused(() => obligation.commit()));
    }

    finalize(cx) {
        const { chance } = this;
        const fate = chance.below(10);
        cx.defer(async () => {
            if (fate < 4) return;
            if (fate < 8) await cx.sleep(chance.below(10));
            if (fate === 8) throw new Error('a finalizer that fails');
            if (fate === 9) await this.cleanUp(cx, 0);
        });
    }

    async own(cx, depth) {
        const region = refused(() => this.open(cx));
        if (region === undefined) return;
        const spawn = () => region.spawn((c) => this.body(c, depth));
        for (let n = this.chance.below(3); n > 0; n--) refused(spawn);
        if (this.chance.percent(60)) await cx.wait(region.join());
    }

    async race(cx, depth) {
        const region = refused(() => this.open(cx));
        if (region === undefined) return;
        const racers = Array.from({ length: 1 + this.chance.below(3) }, () => (c) => this.body(c, depth));
        const raced = region.race(racers);
        raced.catch(() => {});
        await cx.wait(raced);
    }

    /** Work in a cleanup region, where one may be opened. */
    async cleanUp(cx) {
        const scope = refused(() => this.open(cx, { cleanup: true, collect: true, timeout: undefined }));
        if (scope === undefined) return;
        refused(() => scope.spawn((c) => c.sleep(this.chance.below(10))));
        await cx.mask(() => cx.wait(scope.join()));
    }

    /** What has to hold when it is over. */
    assertClean() {
        const { rt, host } = this;
        assert.equal(rt.crash, undefined);
        assert.equal(rt.root.ended, true, rt.dump());
        const { tasks, obligations, timers, regions, runnable, illegal, traceLost } = rt.stats();
        assert.deepEqual({ tasks, obligations, timers, regions, runnable, illegal, traceLost },
            { tasks: 0, obligations: 0, timers: 0, regions: 0, runnable: 0, illegal: 0, traceLost: 0 });
        assert.equal(rt.slots.all().length, 0, 'every slot is free');
        assert.deepEqual([host.microtasks.length, host.timers.size], [0, 0]);
        for (const task of this.tasks) assert.equal(task.ended, true);
        for (const region of this.regions) assert.equal(region.ended, true);
    }
}

/** What a kernel refuses by name is part of a random program; anything else is not. */
function refused(act) {
    const expected = (error) => {
        if (error?.name !== 'EbbError' || !REFUSALS.test(error.code)) throw error;
    };
    try {
        const result = act();
        return typeof result?.then === 'function' ? result.then(undefined, expected) : result;
    } catch (error) {
        return expected(error);
    }
}

/** Runs a program and checks everything that can be checked from here. Returns its events. */
export async function runProgram(seed, options) {
    const program = new Program(seed, options);
    try {
        await program.run();
        program.assertClean();
    } catch (error) {
        throw new Error(`seed ${seed}: ${error.message}`, { cause: error });
    }
    return program;
}
