/*
 * What a key of the usual keyboard is to the Chrome DevTools Protocol. The virtual key code is what makes
 * the browser act by itself: move the focus on Tab, press a button on Enter.
 */

const NAMED = {
    Backspace: { keyCode: 8 },
    Tab: { keyCode: 9 },
    Enter: { keyCode: 13, text: '\r' },
    Escape: { keyCode: 27 },
    Space: { keyCode: 32, key: ' ', text: ' ' },
    PageUp: { keyCode: 33 },
    PageDown: { keyCode: 34 },
    End: { keyCode: 35 },
    Home: { keyCode: 36 },
    ArrowLeft: { keyCode: 37 },
    ArrowUp: { keyCode: 38 },
    ArrowRight: { keyCode: 39 },
    ArrowDown: { keyCode: 40 },
    Delete: { keyCode: 46 },
};

const MODIFIERS = { Alt: 1, Control: 2, Meta: 4, Shift: 8 };

/**
 * @param {string} name 'Enter', 'a', '?', 'Shift+Tab', 'Control+a'
 * @returns {object} the parameters of Input.dispatchKeyEvent, but for its type
 */
export function keyEvent(name) {
    const parts = name.length > 1 ? name.split(/\+(?=.)/) : [name];
    const last = parts.pop();
    const modifiers = parts.reduce((bits, part) => bits | modifierBit(part, name), 0);
    const event = NAMED[last] ? namedKey(last) : printableKey(last, name);
    if (modifiers & ~MODIFIERS.Shift)
        delete event.text;
    return { ...event, modifiers };
}

function modifierBit(part, name) {
    if (!MODIFIERS[part])
        throw new Error(`no modifier '${part}' (in '${name}'); there are ` +
            Object.keys(MODIFIERS).join(', '));
    return MODIFIERS[part];
}

function namedKey(name) {
    const { keyCode, key = name, text } = NAMED[name];
    return { key, code: name, windowsVirtualKeyCode: keyCode, ...(text && { text }) };
}

function printableKey(character, name) {
    if ([...character].length !== 1)
        throw new Error(`no key '${character}' (in '${name}'); there are characters and ` +
            Object.keys(NAMED).join(', '));
    if (character === ' ')
        return namedKey('Space');
    const upper = character.toUpperCase();
    const alphanumeric = /^[A-Z0-9]$/.test(upper);
    const code = /^[A-Z]$/.test(upper) ? `Key${upper}` : alphanumeric ? `Digit${upper}` : '';
    return { key: character, code, text: character,
        ...(alphanumeric && { windowsVirtualKeyCode: upper.charCodeAt(0) }) };
}
