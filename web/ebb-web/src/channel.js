/**
 * A message to ourselves: where one turn of the host's loop ends and another begins. At most one is underway. Two
 * channels take turns, because Node empties a port's queue before it lets timers run. There a message only keeps the
 * process if somebody waits for it.
 */
export class Channel {
    #pairs;
    #next = 0;
    #underway = false;

    constructor(MessageChannel, arrived) {
        this.#pairs = [new MessageChannel(), new MessageChannel()];
        for (const { port1 } of this.#pairs) {
            port1.onmessage = () => {
                this.#underway = false;
                this.#next = 1 - this.#next;
                port1.unref?.();
                arrived();
            };
            port1.unref?.();
        }
    }

    post(waitedFor) {
        const { port1, port2 } = this.#pairs[this.#next];
        if (waitedFor) port1.ref?.();
        if (this.#underway) return;
        this.#underway = true;
        port2.postMessage(0);
    }

    close() {
        for (const { port1 } of this.#pairs) port1.close();
    }
}
