/* What lives in the service: its workflows, and below them its regions and tasks. */
import { Drains } from './drains.js';
import { h, setText } from './element.js';
import { TreeView } from './tree.js';

export function overview(place, host) {
    const drains = new Drains(host);
    const tree = new TreeView(host.model, host);
    const leftOut = h('span', { id: 'left-out', className: 'quiet' });
    place.append(
        h('div', { className: 'panel' }, h('h3', {}, 'Workflows'), drains.element),
        h('div', { className: 'panel' }, h('h3', {}, 'Regions and tasks ', leftOut), tree.water),
    );
    globalThis.dashboardTree = tree; /* for those who look with the console: dashboardTree.frames */
    return {
        shown: () => tree.start(),
        hidden: () => tree.stop(),
        on: {
            live: ({ loops: [loop] }) => drains.show(loop.workflows, performance.now()),
            tree: () => {
                const { regions, tasks } = host.model.leftOut;
                setText(leftOut, regions + tasks === 0 ? '' : `${regions} regions and ${tasks} tasks more are not shown`);
                tree.changed();
            },
        },
    };
}
