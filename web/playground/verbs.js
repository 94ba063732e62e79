/**
 * What a person can do, to which kind of node, and by which key. `can` says when it would do something,
 * `lacks` why it would not.
 *
 * A verb is called with the run, a node and what is chosen beside the buttons; it may throw what the runtime
 * throws.
 */
export const VERBS = {
    spawn: {
        key: 's', of: 'region', label: 'Spawn', can: isOpen, lacks: 'admits nothing any more',
        run: (run, node, { kind, times }) => {
            for (let i = 0; i < times; i++) run.spawn(node.handle, kind);
        },
    },
    region: {
        key: 'n', of: 'region', label: 'New region', hint: 'inside of this one', can: isOpen,
        lacks: 'admits nothing any more',
        run: (run, node) => run.open(node.handle),
    },
    close: {
        key: 'x', of: 'region', label: 'Close', hint: 'no new work; what runs may finish', can: isOpen,
        lacks: 'is closing',
        run: (run, node) => run.close(node.handle),
    },
    mask: {
        key: 'm', of: 'task', label: 'Mask', hint: 'a cancel waits until it is unmasked',
        can: attended, run: (run, node) => node.desk.ask('mask'),
    },
    unmask: {
        key: 'u', of: 'task', label: 'Unmask',
        can: (node) => attended(node) && node.desk.masks.length > 0, lacks: 'has no mask of yours',
        run: (run, node) => node.desk.ask('unmask'),
    },
    checkpoint: {
        key: 'k', of: 'task', label: 'Checkpoint', hint: 'looks once whether it should stop',
        can: (node) => attended(node) && !node.desk.checks, lacks: 'checks often anyway',
        run: (run, node) => node.desk.ask('checkpoint'),
    },
    hold: {
        key: 'h', of: 'task', label: 'Hold a lease', hint: 'an obligation: one that is forgotten is a leak',
        can: attended, run: (run, node) => node.desk.ask('hold'),
    },
    commit: {
        key: 'o', of: 'task', label: 'Commit it',
        can: (node) => attended(node) && node.desk.leases.length > 0, lacks: 'holds no lease',
        run: (run, node) => node.desk.ask('commit'),
    },
    cancel: {
        key: 'c', label: 'Cancel', hint: 'asks to stop, with a budget to clean up',
        can: (node) => node.live,
        run: (run, node, { reason }) => run.cancel(node.handle, { kind: reason, message: 'from the page' }),
    },
    force: {
        key: 'f', label: 'Force', hint: 'the budget is over', can: (node) => node.live,
        run: (run, node) => run.force(node.handle),
    },
};

/** Whether it takes new work. */
function isOpen(node) {
    return node.live && node.phase === 'Open';
}

/** Whether its code listens: it has been polled, and has not ended. */
function attended(node) {
    return node.live && node.desk !== undefined && node.phase !== 'Created';
}

/**
 * The node that a verb is for when this one is selected: a task stands for its region where that is meant.
 */
export function targetOf(verb, node) {
    if (verb.of === undefined || verb.of === node.what) return node;
    return verb.of === 'region' && verb !== VERBS.close ? node.parent : undefined;
}

/** Why a verb would do nothing when this node is selected; undefined if it does something. */
export function whyNot(verb, node) {
    const target = targetOf(verb, node);
    if (target === undefined) return `${verb.label} is for a ${verb.of}, and ${node.name} is a ${node.what}.`;
    if (target.handle !== undefined && (verb.can === undefined || verb.can(target))) return undefined;
    return `${verb.label}: ${target.name} ${lacking(verb, target)}.`;
}

function lacking(verb, node) {
    if (!node.live) return 'has ended';
    if (node.phase === 'Created') return 'has not begun';
    return node.what === 'task' && node.desk === undefined ? 'takes no requests' : verb.lacks ?? 'does not take that';
}

export function verbOfKey(key) {
    return Object.values(VERBS).find((verb) => verb.key === key);
}

/** By severity, as the kernel has them; a list of what can be chosen. */
export const REASONS = {
    polite: [['USER'], ['RACE_LOST'], ['DISCONNECT']],
    urgent: [['TIMEOUT'], ['BUDGET'], ['SIBLING_FAILED'], ['LEASE_LOST'], ['RESOURCE']],
    forced: [['SHUTDOWN']],
};
