import { createElement, useEffect, useState } from 'react';

/** Calls `start(region)` with a region that lives as long as the component is mounted with these `deps`. */
export function useRegion(rt, name, start, deps) {
    useEffect(() => {
        const region = rt.region({ name });
        start(region);
        return () => region.cancel('unmounted');
    }, deps);
}

/** Shows a price, and asks for it again and again. */
export function Price({ rt, symbol }) {
    const [price, setPrice] = useState('…');
    useRegion(rt, `price of ${symbol}`, (region) => {
        region.spawn(async (cx) => {
            for (;;) {
                const answer = await cx.fetch(`/api/price?of=${symbol}`);
                setPrice(await answer.text());
                await cx.sleep(1000);
            }
        });
    }, [rt, symbol]);
    return createElement('output', null, price);
}
