/** The host's objects by the numbers that the module has for them. */
export class Slots {
    #items = [undefined];
    #free = [];

    take(item) {
        const slot = this.#free.pop() ?? this.#items.length;
        this.#items[slot] = item;
        return slot;
    }

    at(slot) {
        return this.#items[slot];
    }

    /** Nothing happens if somebody else has it now. */
    give(slot, item) {
        if (slot === 0 || item === undefined || this.#items[slot] !== item) return;
        this.#items[slot] = undefined;
        this.#free.push(slot);
    }

    all() {
        return this.#items.filter((item) => item !== undefined);
    }
}
