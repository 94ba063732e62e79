/**
 * Counts the listeners of an EventTarget, an AbortSignal too, from here on: `target.listenerCount()`.
 * @template {EventTarget} T
 * @param {T} target
 * @returns {T & { listenerCount(): number, listenersAdded(): number }}
 */
export function counted(target) {
    const present = new Map(); /* the listener, by what stands for it here */
    let added = 0;
    const { addEventListener, removeEventListener } = target;
    return Object.assign(target, {
        listenerCount: () => present.size,
        listenersAdded: () => added,
        addEventListener(type, listener, options) {
            added++;
            const once = typeof options === 'object' && options?.once;
            const wrapped = (event) => {
                if (once) present.delete(listener);
                listener.call(target, event);
            };
            present.set(listener, wrapped);
            addEventListener.call(target, type, wrapped, options);
        },
        removeEventListener(type, listener, options) {
            const wrapped = present.get(listener);
            present.delete(listener);
            if (wrapped !== undefined) removeEventListener.call(target, type, wrapped, options);
        },
    });
}
