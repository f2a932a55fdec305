/** What one node knows of another. */
export interface NodeView {
  readonly id: string;
  readonly flags: readonly string[];
  readonly masterId: string | undefined;
  /** Of two nodes that claim a slot, the one with the larger number has it. */
  readonly configEpoch: number;
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
      const [id = '', , flags = '', masterId = '-', , , configEpoch, , ...slots] = line.split(' ');
      const ranges = slots
        .filter((slot) => !slot.startsWith('['))
        .map((slot) => {
          const [from, to = from] = slot.split('-').map(Number);
          return [from, to] as [number, number];
        });
      const master = masterId === '-' ? undefined : masterId;
      return { id, flags: flags.split(','), masterId: master, configEpoch: Number(configEpoch), ranges };
    });
}
