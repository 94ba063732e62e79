/** Counts primes in a worker that belongs to the task: it is asked to stop, and is gone when the task is. */
export function countPrimes(region, limit, onProgress) {
    return region.spawn(async (cx) => {
        const worker = new Worker(new URL('primes-worker.js', import.meta.url), { type: 'module' });
        cx.defer(() => worker.terminate());
        const answer = new Promise((resolve) => {
            cx.on(worker, 'message', ({ data }) => ('found' in data ? resolve(data) : onProgress(data.at)));
        });
        worker.postMessage({ limit });
        try {
            return await cx.wait(answer);
        } catch (error) {
            worker.postMessage('stop');
            await cx.mask(() => cx.wait(answer)); // what it had found when it stopped
            throw error;
        }
    }, { name: 'primes' });
}
