/* Regions and tasks, as a table that is indented. */
import { change } from './api.js';
import { setText, setVariable } from './element.js';
import { age, emptyRow, rowButton, showRows, showState } from './rows.js';

/* Regions and tasks are numbered apart. */
const idOf = (node) => (node.region === undefined ? `task ${node.task}` : `region ${node.region}`);

function make(node, say) {
    const row = emptyRow(4);
    row.dataset.kind = node.region === undefined ? 'task' : 'region';
    if (node.region !== undefined) {
        const cancel = () => say(`cancel of ${node.site}`, change(`api/v1/regions/${node.region}/cancel`));
        row.cells[4].append(rowButton('Cancel', node.site ?? node.region, cancel));
    }
    return row;
}

function doing(node) {
    if (node.region !== undefined) {
        const why = node.request === undefined ? '' : `${node.request} "${node.message}"`;
        return [why, node.left_ms === undefined ? '' : `${age(Math.max(0, node.left_ms))} left`].filter(Boolean).join(', ');
    }
    const begun = node.begun_at === undefined ? '' : ` begun at ${node.begun_at}`;
    return `${node.waits ? 'waits for ' : ''}${node.doing ?? ''}${begun}${node.masked ? ', masked' : ''}`;
}

function update(row, node) {
    const [name, state, does, old] = row.cells;
    setText(name, `${node.site ?? '?'}`);
    name.title = idOf(node);
    setVariable(row, '--depth', String(node.depth));
    showState(state, node.state ?? node.phase);
    setText(does, doing(node));
    setText(old, age(node.age_ms));
}

export function showTree(table, leftOut, loop, say) {
    showRows(table, loop.tree, idOf, (node) => make(node, say), update);
    const { regions, tasks } = loop.left_out;
    setText(leftOut,
        regions + tasks === 0 ? '' : `${regions} regions and ${tasks} tasks more are not shown`);
}
