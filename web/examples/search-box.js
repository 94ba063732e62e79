/**
 * A search box: each keystroke starts a search and cancels the one before. An answer that comes late can't
 * overwrite a newer one, because the task that would have shown it has ended.
 */
export function searchBox(region, input, list) {
    let last;
    return region.spawn(async (cx) => {
        const searches = cx.region({ name: 'searches', collect: true });
        cx.on(input, 'input', () => {
            last?.cancel({ kind: 'RACE_LOST', message: 'another key was pressed' });
            last = searches.spawn((search) => show(search, input.value, list), { timeout: 5000 });
            last.result.catch((error) => complain(error, list));
        });
        await cx.sleep(Infinity); // until its region is cancelled: then listener and searches go
    });
}

async function show(cx, text, list) {
    await cx.sleep(50); // wait for a pause in typing
    const answer = await cx.fetch(`/api/search?q=${encodeURIComponent(text)}`);
    const found = await answer.json(); // aborted with the task, too
    list.replaceChildren(...found.map((each) => new Option(each)));
}

function complain(error, list) {
    if (error.name === 'AbortError') return; // cancelled: a newer search runs
    list.replaceChildren(new Option(error.name === 'TimeoutError' ? 'too slow' : 'no answer'));
}
