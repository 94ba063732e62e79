import { Runtime, hostOf } from '../ebb-web/index.js'; // import maps do not reach workers

const rt = new Runtime(hostOf(globalThis));

onmessage = ({ data }) => {
    if (data === 'stop') rt.cancel('stop');
    else rt.root.spawn((cx) => count(cx, data.limit));
};

async function count(cx, limit) {
    let found = 0;
    let at = 2;
    cx.defer(() => postMessage({ found, at })); // whatever ends it
    for (; at < limit; at++) {
        if (isPrime(at)) found++;
        if (at % 10_000 === 0) {
            postMessage({ at });
            await cx.yield(); // a checkpoint, and the turn in which a message can arrive
        }
    }
}

function isPrime(n) {
    for (let i = 2; i * i <= n; i++) if (n % i === 0) return false;
    return true;
}
