/* Durable instances: a page of those that match, and what may be asked of them. */
import { h, setText } from './element.js';
import { emptyRow, rowButton, showRows, showState, tableOf } from './rows.js';

const EVERY_MS = 1000;
const STATES = ['Running', 'Suspended', 'Completed', 'Failed', 'Cancelled', 'Terminated'];

function filterForm(all) {
    const field = (label, name) => h('label', {}, label, ' ',
        h('input', { name, autocomplete: 'off', spellcheck: false, maxLength: 255 }));
    return h('form', { id: 'filter' }, field('Id begins with', 'prefix'), field('Name', 'name'),
        h('label', {}, 'State ', h('select', { name: 'state' }, h('option', { value: '' }, 'any'),
            ...STATES.map((s) => h('option', {}, s)))),
        h('button', { type: 'submit' }, 'Filter'), all);
}

function make(i, { say, change }) {
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

export function instances(place, host) {
    const all = h('button', { type: 'button', id: 'cancel-all' });
    const form = filterForm(all);
    const { body, scroll } = tableOf('instances', ['Id', 'Orchestration', 'State', 'Status', 'Started', '']);
    const more = h('p', { id: 'more', className: 'quiet', hidden: true }, 'There are more: filter them.');
    place.append(h('div', { className: 'panel' }, h('h3', {}, 'Instances'), form, scroll, more));
    let timer;

    const filter = () => Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ''));
    const disarm = () => {
        delete all.dataset.armed;
        setText(all, 'Cancel all that match');
    };
    const look = async () => {
        clearTimeout(timer);
        const page = await host.ask(`api/v1/instances?${new URLSearchParams({ most: 200, ...filter() })}`);
        more.hidden = page.next === null;
        showRows(body, page.instances, (i) => i.id, (i) => make(i, host), update);
    };
    const again = async () => {
        await look().catch((error) => host.say('instances', Promise.reject(error)));
        clearTimeout(timer);
        if (!place.parentElement.hidden) timer = setTimeout(again, EVERY_MS);
    };
    /* Says first how many that would be. */
    const cancelAll = async () => {
        const of = filter();
        const body = Object.keys(of).length === 0 ? { all: true } : of;
        const armed = all.dataset.armed === JSON.stringify(body);
        const { cancelled } = await host.change('api/v1/cancel', armed ? body : { ...body, dry_run: true });
        if (armed) {
            disarm();
            return `${cancelled} are asked to cancel`;
        }
        all.dataset.armed = JSON.stringify(body);
        setText(all, `Cancel ${cancelled} instances: sure?`);
        return `${cancelled} match`;
    };

    disarm();
    form.addEventListener('submit', (event) => {
        event.preventDefault();
        disarm();
        again();
    });
    form.addEventListener('input', disarm);
    all.addEventListener('click', () => host.say('cancel of all that match', cancelAll()));
    return { shown: again, hidden: () => clearTimeout(timer) };
}
