/** Runs a task that is cancelled in its sleep, and says in the page how that ended. */
export async function show(rt) {
    const region = rt.region();
    const task = region.spawn((cx) => cx.sleep(1e6));
    await new Promise((resolve) => setTimeout(resolve, 0));
    region.cancel('enough');
    const { status } = await region.done;
    document.body.dataset.ended = `${status} ${await task.result.catch(({ kind, reason }) => `${kind} ${reason}`)}`;
}
