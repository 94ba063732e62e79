/* What the numbers of the stream were in the last ten minutes: rates, and times of which half or 99 in 100 were shorter. */
const KEPT_MS = 600000;

/** How many more there are in each class than before; all of them if the counting has begun again. */
function more(now = [], before = []) {
    const diff = now.map((n, i) => n - (before[i] ?? 0));
    return diff.some((n) => n < 0) ? now : diff;
}

/**
 * The time, in ms, that a share of those counted stayed below: class i has those from 2^(i-1) to 2^i ns. In a class they are
 * taken to be spread evenly, so it is right to a factor of two. NaN: none were counted.
 */
export function quantile(counts, share) {
    const all = counts.reduce((sum, n) => sum + n, 0);
    let left = all * share;
    for (let i = 0; i < counts.length; i++) {
        if (left <= counts[i] && counts[i] > 0) return ((2 ** i / 2) * (1 + left / counts[i])) / 1e6;
        left -= counts[i];
    }
    return NaN;
}

export class Series {
    #last;
    points = []; /* { at, requests, turns, ... }: a number, or NaN where there is nothing to say */

    /** @param {object} loop of a `live` event */
    add(loop, at) {
        const { http, worker, measured, now_ns: now } = loop;
        const is = { now, http, worker, polls: measured?.times, since: measured?.since_ns };
        const was = this.#last;
        this.#last = is;
        if (was === undefined || now <= was.now || http.requests < was.http.requests) return;
        const seconds = (now - was.now) / 1e9;
        const rate = (what, name) => (is[what] === undefined || was[what] === undefined ? NaN : (is[what][name] - was[what][name]) / seconds);
        const requests = more(http.times, was.http.times);
        const polls = more(is.polls, is.since === was.since ? was.polls : []);
        const cancels = more(worker?.cancel_times, was.worker?.cancel_times);
        this.points.push({
            at, requests: rate('http', 'requests'), turns: rate('worker', 'turns'),
            request50: quantile(requests, 0.5), request99: quantile(requests, 0.99),
            poll50: quantile(polls, 0.5), poll99: quantile(polls, 0.99),
            cancel50: quantile(cancels, 0.5), cancel99: quantile(cancels, 0.99),
        });
        while (this.points[0].at < at - KEPT_MS) this.points.shift();
    }
}
