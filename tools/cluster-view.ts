/** What one node knows of another. */
export interface NodeView {
  readonly id: string;
  readonly flags: readonly string[];
  readonly masterId: string | undefined;
  /** When the ping was sent that is not answered yet, in milliseconds since 1970; 0 if there is none. */
  readonly pingSent: number;
  /** When a ping was last answered, in milliseconds since 1970. */
  readonly pongReceived: number;
  /** From and to, both served. */
  readonly ranges: readonly (readonly [number, number])[];
}

export function serves(node: NodeView | undefined, slot: number): boolean {
  return node?.ranges.some(([from, to]) => from <= slot && slot <= to) ?? false;
}

/** `<id> <address> <flags> <master id> <ping> <pong> <epoch> <link> <slot> … [<slot in migration>] …` */
export function parseNodes(text: string): NodeView[] {
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [id = '', , flags = '', masterId = '-', pingSent, pongReceived, , , ...slots] = line.split(' ');
      const ranges = slots
        .filter((slot) => !slot.startsWith('['))
        .map((slot) => {
          const [from, to = from] = slot.split('-').map(Number);
          return [from, to] as [number, number];
        });
      const master = masterId === '-' ? undefined : masterId;
      const pings = { pingSent: Number(pingSent), pongReceived: Number(pongReceived) };
      return { id, flags: flags.split(','), masterId: master, ...pings, ranges };
    });
}
