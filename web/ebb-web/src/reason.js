/** Why something is to stop, from what a caller has at hand: a text, an error, or an object that says it all. */
import { Cancelled, isError } from './errors.js';
import { checkKeys, printable } from './options.js';

/** What a task that was cancelled with PARENT passes on: not a kind for callers, and no weaker than it was. */
const BY_SEVERITY = { polite: 'USER', urgent: 'TIMEOUT', forced: 'SHUTDOWN' };

/** @returns {{ kind: string, message: string, within?: number, polls?: number }} */
export function reasonOf(reason) {
    if (isError(reason)) return ofError(reason);
    if (typeof reason !== 'object' || reason === null) return { kind: 'USER', message: printable(reason ?? '') };
    checkKeys(reason, ['kind', 'message', 'within', 'polls'], 'reason of a cancel');
    return { ...reason, kind: reason.kind ?? 'USER', message: printable(reason.message ?? '') };
}

function ofError(error) {
    if (!(error instanceof Cancelled)) {
        return { kind: error.name === 'TimeoutError' ? 'TIMEOUT' : 'USER', message: printable(error.message) };
    }
    return { kind: error.kind === 'PARENT' ? BY_SEVERITY[error.severity] : error.kind, message: error.reason };
}

/** What the abort of a signal gave as its reason: anything at all, and no reason to throw. */
export function reasonOfAbort(reason) {
    try {
        return isError(reason) ? ofError(reason) : { kind: 'USER', message: printable(reason ?? '') };
    } catch {
        return { kind: 'USER', message: '' };
    }
}
