/* What lives in the service: its workflows, and below them its regions and tasks. */
import { showDrains } from './drains.js';
import { h } from './element.js';
import { tableOf } from './rows.js';
import { showTree } from './tree.js';

export function overview(place, { say }) {
    const drains = tableOf('drains', ['Workflow', 'State', 'Budget', 'In flight', 'Held by', '']);
    const explained = h('pre', { id: 'explained', hidden: true, tabIndex: 0, ariaLabel: 'What the workflow waits for' });
    const tree = tableOf('tree', ['Region, task', 'Phase', 'Does', 'Age', '']);
    const leftOut = h('span', { id: 'left-out', className: 'quiet' });
    place.append(
        h('div', { className: 'panel' }, h('h3', {}, 'Workflows'), drains.scroll, explained),
        h('div', { className: 'panel' }, h('h3', {}, 'Regions and tasks ', leftOut), tree.scroll),
    );
    const live = ({ loops: [loop] }) => {
        showTree(tree.table, leftOut, loop, say);
        showDrains(drains.table, explained, loop, say);
    };
    return { on: { live } };
}
