/* Durable instances: a page of those that match, and what may be asked of them. */
import { change } from './api.js';
import { setText } from './element.js';
import { emptyRow, rowButton, showRows, showState } from './rows.js';

const table = document.querySelector('#instances');
const form = document.querySelector('#filter');
const all = document.querySelector('#cancel-all');

/** What the form says, without what is left empty. */
function filter() {
    return Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ''));
}

export const query = () => new URLSearchParams({ most: 200, ...filter() });

function make(i, say) {
    const row = emptyRow(5);
    const path = `api/v1/instances/${encodeURIComponent(i.id)}`;
    row.cells[5].append(rowButton('Cancel', i.id, () => say(`cancel of ${i.id}`, change(`${path}/cancel`))));
    return row;
}

const shown = (custom) => custom === null ? '' : typeof custom === 'string' ? custom : JSON.stringify(custom);

function update(row, i) {
    const [id, name, state, status, started] = row.cells;
    setText(id, i.id);
    setText(name, i.version === 0 ? i.name : `${i.name} ${i.version}`);
    showState(state, i.state);
    setText(status, i.text || (i.unserved ? 'no live worker can run it' : shown(i.custom)));
    setText(started, new Date(i.started / 1e6).toLocaleString('sv'));
    row.cells[5].firstElementChild.hidden = i.ended !== 0;
}

export function showInstances(page, say) {
    document.querySelector('#durable').hidden = false;
    document.querySelector('#more').hidden = page.next === null;
    showRows(table, page.instances, (i) => i.id, (i) => make(i, say), update);
}

function disarm() {
    delete all.dataset.armed;
    setText(all, 'Cancel all that match');
}

/** Says first how many that would be. */
async function cancelAll() {
    const of = filter();
    const body = Object.keys(of).length === 0 ? { all: true } : of;
    if (all.dataset.armed === JSON.stringify(body)) {
        disarm();
        const { cancelled } = await change('api/v1/cancel', body);
        return `${cancelled} are asked to cancel`;
    }
    const { cancelled } = await change('api/v1/cancel', { ...body, dry_run: true });
    all.dataset.armed = JSON.stringify(body);
    setText(all, `Cancel ${cancelled} instances: sure?`);
    return `${cancelled} match`;
}

/** `again` is called when the filter has changed. */
export function useInstances(say, again) {
    form.addEventListener('submit', (event) => {
        event.preventDefault();
        disarm();
        again();
    });
    form.addEventListener('input', disarm);
    all.addEventListener('click', () => say('cancel of all that match', cancelAll()));
}
