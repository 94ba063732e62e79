/* What the page asks of its service. All paths are relative to the page: it may have a prefix. */

const KEY = 'ebb-token';

/** A token may come with the address, after the #, which browsers send to nobody. It is kept for this tab. */
export function takeToken() {
    const given = new URLSearchParams(location.hash.slice(1)).get('token');
    if (given === null) return;
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, '', location.pathname + location.search);
}

export function setToken(token) {
    if (token === '') sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, token);
}

export const hasToken = () => sessionStorage.getItem(KEY) !== null;

function headers() {
    const token = sessionStorage.getItem(KEY);
    return token === null ? {} : { authorization: `Bearer ${token}` };
}

/** What went wrong, as the service says it, with its `code`. */
async function problemOf(response) {
    const said = await response.json().catch(() => null);
    const { code, message, where, expected } = said?.error ?? { message: `status ${response.status}` };
    const text = [message, where && `at ${where}`, expected && `expected ${expected}`].filter(Boolean).join(', ');
    return Object.assign(new Error(text), { code });
}

export const pathOf = (id) => `api/v1/instances/${encodeURIComponent(id)}`;

export async function ask(path) {
    const response = await fetch(path, { headers: headers() });
    if (!response.ok) throw await problemOf(response);
    return response.json();
}

export async function askBytes(path) {
    const response = await fetch(path, { headers: headers() });
    if (!response.ok) throw await problemOf(response);
    return new Uint8Array(await response.arrayBuffer());
}

export async function change(path, body = {}) {
    const response = await fetch(path, {
        method: 'POST',
        headers: { ...headers(), 'content-type': 'application/json' },
        body: JSON.stringify(body),
    });
    if (!response.ok) throw await problemOf(response);
    return response.json();
}

function dispatch(block, on) {
    let name = 'message';
    const data = [];
    for (const line of block.split('\n')) {
        if (line.startsWith('event: ')) name = line.slice(7);
        else if (line.startsWith('data: ')) data.push(line.slice(6));
    }
    if (data.length > 0) on(name, JSON.parse(data.join('\n')));
}

/**
 * Reads events until the stream ends, and calls on(name, data) for each. EventSource can't send a token.
 * @param {AbortSignal} signal
 */
export async function events(path, on, signal) {
    const response = await fetch(path, { headers: headers(), signal });
    if (!response.ok) throw await problemOf(response);
    let text = '';
    for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
        text += piece;
        const blocks = text.split('\n\n');
        text = blocks.pop();
        for (const block of blocks) dispatch(block, on);
    }
}
