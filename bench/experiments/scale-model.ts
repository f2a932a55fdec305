/** What coalescing costs as things grow, from four measured figures. The same formulas stand in docs/scale.md. */
export interface ScaleModel {
  /** CPU of the client for a round trip on one connection, µs. */
  readonly roundTripCpuUs: number;
  /** CPU of the client for a command in it, µs. */
  readonly commandCpuUs: number;
  /** Time of a round trip with one command, at no distance, s. */
  readonly roundTripSeconds: number;
  /** Time that one more command adds, s. */
  readonly commandSeconds: number;
}

/** One loop, and many of them: CPU per command and commands per second of each. */
export function modelFrom(
  one: { readonly cpuUs: number; readonly perSecond: number },
  many: { readonly depth: number; readonly cpuUs: number; readonly perSecond: number },
): ScaleModel {
  const roundTripCpuUs = (one.cpuUs - many.cpuUs) / (1 - 1 / many.depth);
  return {
    roundTripCpuUs,
    commandCpuUs: one.cpuUs - roundTripCpuUs,
    roundTripSeconds: 1 / one.perSecond,
    commandSeconds: 1 / many.perSecond,
  };
}

/** CPU of the client per command, µs, where a batch has `batch` commands. */
export function cpuPerCommand({ commandCpuUs, roundTripCpuUs }: ScaleModel, batch: number): number {
  return commandCpuUs + roundTripCpuUs / batch;
}

/** Commands per second of one connection with `callers` callers and `roundTripMs` of distance. */
export function commandsPerSecond(model: ScaleModel, callers: number, roundTripMs: number): number {
  return callers / (roundTripMs / 1000 + model.roundTripSeconds + (callers - 1) * model.commandSeconds);
}

/**
 * Commands in a batch that is not empty, where a process issues `perSecond` commands in `turns` turns of its event loop,
 * each at random to one of `nodes`.
 */
export function meanBatch(perSecond: number, turns: number, nodes: number): number {
  const expected = perSecond / turns / nodes;
  return expected / -Math.expm1(-expected);
}
