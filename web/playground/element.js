/** Makes an element. Properties are set, what has a dash in its name or is `role` is an attribute. */
export function h(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
        if (name.includes('-') || name === 'role') element.setAttribute(name, value);
        else element[name] = value;
    }
    element.append(...children);
    return element;
}

/** Writes only what is new: a frame in which nothing changed touches no element. */
export function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
    if (value === undefined) element.removeAttribute(name);
    else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

/** A button that would do nothing keeps its place and its focus. */
export function able(button, is) {
    setAttribute(button, 'aria-disabled', is ? undefined : 'true');
}

export function setVariable(element, name, value) {
    if (element.style.getPropertyValue(name) !== value) element.style.setProperty(name, value);
}

export function seconds(ms) {
    return ms >= 9950 ? `${Math.round(ms / 1000)} s` : `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
}

/** '1 task', '2 tasks' */
export function count(n, what) {
    return `${n} ${what}${n === 1 ? '' : 's'}`;
}
