import { bodyOf } from './source.js';

/**
 * Scenes to begin with. The page shows the text of these functions, and runs what stands there: it may be edited. Each sets something up, does something to it after a while, and says what to watch.
 * Their waits are on the tempo's clock: they pause and slow down with everything else.
 */
async function shutdown({ run, say, sleep }) {
    const service = run.open(run.root, 'service');
    const [door, guests, storage] = ['door', 'guests', 'storage'].map((name) => run.open(service, name));
    run.spawn(door, 'worker', 'acceptor');
    for (const n of [1, 2, 3]) run.spawn(guests, 'worker', `guest ${n}`);
    run.spawn(storage, 'lease', 'writer');
    run.spawn(storage, 'slow', 'flusher');
    say('A service: a door, three guests, a storage. It is about to be stopped.');
    await sleep(2000);
    say('First the door is closed: nothing new comes in, and the acceptor finishes what it has.');
    await run.close(door);
    say('Now the guests are cancelled: they acknowledge, clean up (gold), run their finalizers (blue).');
    run.cancel(guests, { kind: 'SHUTDOWN', message: 'the service stops', within: 4000 });
    await guests.done;
    say('The storage goes last: the writer gives its lease back, the flusher takes its two seconds.');
    run.cancel(storage, { kind: 'SHUTDOWN', message: 'the service stops', within: 6000 });
    await storage.done;
    await run.close(service);
    return 'The tide went out in order, and now the water is still.';
}

async function masked({ run, say, sleep }) {
    const vault = run.open(run.root, 'vault');
    run.start(vault, 'transfer', async (cx) => {
        await cx.sleep(800);
        await cx.mask(() => cx.sleep(3600)); /* both halves or neither */
        try {
            await cx.sleep(60000);
        } finally {
            await cx.mask(() => cx.sleep(700));
        }
    });
    run.spawn(vault, 'worker', 'clerk');
    say('The transfer is about to enter a masked section (stripes): both halves of it or neither.');
    await sleep(1800);
    say('Both are asked to stop. The clerk obeys; the transfer stays CancelRequested while it is masked.');
    run.cancel(vault, { kind: 'USER', message: 'changed my mind' });
    await vault.done;
    return 'Only when the mask was gone did it acknowledge; its budget ran all the while.';
}

async function cascade({ run, say, sleep }) {
    let region = run.root;
    const regions = ['fleet', 'squadron', 'ship', 'deck'].map((name) => (region = run.open(region, name)));
    regions.forEach((each, i) => run.spawn(each, 'worker', ['admiral', 'commodore', 'captain', 'sailor'][i]));
    run.spawn(region, 'worker', 'another sailor');
    say('Regions in regions. The outermost is about to lose its connection.');
    await sleep(2000);
    say('One request reaches all of them, parents first. Each closes only after what is in it has ended.');
    run.cancel(regions[0], { kind: 'DISCONNECT', message: 'the line is dead' });
    await regions[0].done;
    return 'Those below are cancelled with PARENT, and know the root cause: select one and look at its reason.';
}

async function abandoned({ run, say, sleep }) {
    const cellar = run.open(run.root, 'cellar');
    run.spawn(cellar, 'stubborn', 'the stubborn one');
    run.spawn(cellar, 'worker', 'the reasonable one');
    say('One of these two never looks whether it should stop.');
    await sleep(1500);
    say('Both have 3 s, four fifths of it for themselves. Then the stubborn one is forced: 8 more polls.');
    run.cancel(cellar, { kind: 'TIMEOUT', message: 'it is late', within: 3000 });
    await cellar.done;
    return 'It was abandoned and is named in the report. Nothing waits for it, and the region could close.';
}

async function race({ run, say }) {
    const regatta = run.open(run.root, 'regatta');
    const { result } = run.spawn(regatta, 'race', 'regatta master');
    say('Three boats. When the first is home the others are asked to stop, and clean up before it is over.');
    const winner = await result.catch(() => 'nobody');
    await run.close(regatta).catch(() => {});
    return `The winner is ${winner}. The losers were drained: RACE_LOST, and nothing of them is left.`;
}

export const SCENES = {
    shutdown: { label: 'Shutdown in order', source: bodyOf(shutdown) },
    masked: { label: 'Masked section', source: bodyOf(masked) },
    cascade: { label: 'Cascade', source: bodyOf(cascade) },
    abandoned: { label: 'Abandoned', source: bodyOf(abandoned) },
    race: { label: 'Race', source: bodyOf(race) },
};
