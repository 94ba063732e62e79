// The page of the shop: the load switch, and the orders that were made here.
const $ = (id) => document.getElementById(id);
const orders = new Map(); // id -> its row

async function ask(method, path, body) {
    const answer = await fetch(path, {
        method,
        headers: { 'content-type': 'application/json' },
        body: body && JSON.stringify(body),
    });
    const said = await answer.json();
    if (!answer.ok) throw new Error(said.error ?? answer.statusText);
    return said;
}

const tell = (text) => { $('said').textContent = text; };
const attempt = (fn) => () => fn().catch((e) => tell(e.message));

function showLoad(load) {
    $('counts').textContent =
        `${load.open} under way, ${load.ordered} ordered by the load, ${load.refused} refused, ${load.machines} machines`;
    for (const b of $('load').querySelectorAll('button')) {
        b.setAttribute('aria-pressed', String(Number(b.dataset.rate) === load.orders_per_second));
    }
}

function rowOf(id) {
    const row = $('orders').tBodies[0].insertRow(0);
    const head = document.createElement('th');
    head.scope = 'row';
    head.textContent = id;
    row.append(head);
    for (let i = 0; i < 4; i++) row.insertCell();
    const cancel = document.createElement('button');
    cancel.type = 'button';
    cancel.textContent = 'Cancel';
    cancel.addEventListener('click', attempt(() => ask('POST', `/shop/orders/${id}/cancel`, {})));
    row.cells[4].append(cancel);
    return row;
}

function showOrder(order) {
    const { cells } = orders.get(order.id);
    cells[1].textContent = order.failure ? `${order.state}: ${order.failure}` : order.state;
    cells[2].textContent = order.stage ?? '';
    cells[3].textContent = order.machine ?? 'ended';
    cells[4].firstChild.hidden = order.state !== 'Running';
}

const isUnderWay = (id) => !orders.get(id).cells[4].firstChild.hidden;

async function look() {
    try {
        showLoad(await ask('GET', '/shop/load'));
        for (const id of [...orders.keys()].filter(isUnderWay)) showOrder(await ask('GET', `/shop/orders/${id}`));
    } catch (e) {
        $('counts').textContent = `no answer: ${e.message}`;
    }
    setTimeout(look, 500);
}

for (const b of document.querySelectorAll('[data-rate]')) {
    const orders_per_second = Number(b.dataset.rate);
    b.addEventListener('click', attempt(async () => showLoad(await ask('POST', '/shop/load', { orders_per_second }))));
}
for (const b of document.querySelectorAll('[data-item]')) {
    b.addEventListener('click', attempt(async () => {
        const { id, cents } = await ask('POST', '/shop/orders', { ...b.dataset });
        orders.set(id, rowOf(id));
        tell(`Ordered for ${(cents / 100).toFixed(2)}.`);
    }));
}
look();
