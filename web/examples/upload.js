const CHUNK = 64 * 1024;

/**
 * Uploads a file in chunks and tells its progress. If it fails or is cancelled, the server is asked to drop what
 * it has: under a mask `cx.fetch` works after the cancel, for as long as the cleanup's budget lasts.
 */
export function upload(region, file, onProgress) {
    return region.spawn(async (cx) => {
        const { id } = await (await cx.fetch('/api/upload', { method: 'POST' })).json();
        try {
            for (let at = 0; at < file.size; at += CHUNK) {
                const body = file.slice(at, at + CHUNK);
                const answer = await cx.fetch(`/api/upload/${id}?at=${at}`, { method: 'PUT', body });
                if (!answer.ok) throw new Error(`the server refused the chunk at ${at}: ${answer.status}`);
                onProgress(Math.min(1, (at + CHUNK) / file.size));
            }
            return id;
        } catch (error) {
            await cx.mask(() => cx.fetch(`/api/upload/${id}`, { method: 'DELETE' }));
            throw error;
        }
    }, { name: `upload of ${file.name}` });
}
