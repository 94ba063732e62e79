/*
 * A value as text for the message of a failed assertion, in a page, where there is no node:util.
 */

const MAX_DEPTH = 4;
const MAX_ITEMS = 50;
const LINE = 72;

/** @returns {string} one line if it is short, else one line a member; never throws */
export function inspect(value, depth = 0, above = []) {
    if (typeof value === 'string')
        return quoted(value);
    if (typeof value === 'bigint')
        return `${value}n`;
    if (typeof value === 'function')
        return `[${/^class\b/.test(value) ? 'class' : 'Function'} ${value.name || '(anonymous)'}]`;
    if (typeof value !== 'object' || value === null)
        return Object.is(value, -0) ? '-0' : String(value);
    if (above.includes(value))
        return '[Circular]';
    try {
        return object(value, depth, [...above, value]);
    } catch (error) {
        return `[an object that can't be read: ${error}]`;
    }
}

function quoted(text) {
    const inner = JSON.stringify(text).slice(1, -1).replace(/\\"/g, '"');
    return text.includes("'") ? JSON.stringify(text) : `'${inner}'`;
}

function object(value, depth, above) {
    if (value instanceof Date)
        return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
    if (value instanceof RegExp)
        return String(value);
    if (value instanceof Error)
        return `[${value.name}: ${value.message}]`;
    const name = prefix(value);
    const [open, close] = isList(value) ? ['[', ']'] : ['{', '}'];
    if (depth >= MAX_DEPTH)
        return `${name}${open}...${close}`;
    const all = members(value, (member) => inspect(member, depth + 1, above));
    return `${name}${laidOut(all, open, close, depth)}`;
}

function isList(value) {
    return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}

function prefix(value) {
    const prototype = Object.getPrototypeOf(value);
    if (prototype === null)
        return '[Object: null prototype] ';
    const name = prototype.constructor?.name ?? 'Object';
    const size = value instanceof Map || value instanceof Set ? `(${value.size})`
        : ArrayBuffer.isView(value) ? `(${value.length ?? value.byteLength})` : '';
    return (name === 'Object' || name === 'Array') && !size ? '' : `${name}${size} `;
}

function members(value, show) {
    if (value instanceof Map)
        return cut([...value], ([key, member]) => `${show(key)} => ${show(member)}`);
    if (value instanceof Set)
        return cut([...value], show);
    if (value instanceof ArrayBuffer)
        return cut([...new Uint8Array(value)], show);
    if (isList(value))
        return cut(Array.from(value), show);
    const isShown = (key) => Object.prototype.propertyIsEnumerable.call(value, key);
    const keys = Reflect.ownKeys(value).filter(isShown);
    return cut(keys, (key) => `${keyText(key)}: ${show(value[key])}`);
}

function cut(list, show) {
    const shown = list.slice(0, MAX_ITEMS).map((member) => show(member));
    return list.length > MAX_ITEMS ? [...shown, `... ${list.length - MAX_ITEMS} more`] : shown;
}

function keyText(key) {
    if (typeof key === 'symbol')
        return `[${String(key)}]`;
    return /^[A-Za-z_$][\w$]*$/.test(key) ? key : quoted(key);
}

function laidOut(parts, open, close, depth) {
    if (parts.length === 0)
        return `${open}${close}`;
    const line = `${open} ${parts.join(', ')} ${close}`;
    if (line.length <= LINE && !line.includes('\n'))
        return line;
    const indent = '  '.repeat(depth + 1);
    return `${open}\n${parts.map((part) => `${indent}${part}`).join(',\n')}\n${indent.slice(2)}${close}`;
}
