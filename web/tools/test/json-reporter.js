/* A reporter for Node's test runner: one line of JSON a test. */
export default async function* report(source) {
    for await (const { type, data } of source)
        if (type === 'test:pass' || type === 'test:fail') {
            const { name, nesting, skip, todo, details } = data;
            const news = { name, nesting, skip, todo, ok: type === 'test:pass', type: details.type,
                failure: details.error?.failureType };
            yield `${JSON.stringify(news)}\n`;
        }
}
