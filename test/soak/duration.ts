const DEFAULT_MINUTES = 15;

/** How much longer or shorter than by default a long run is to be. */
export function soakScale(): number {
  const text = process.env.SOAK_MINUTES;
  if (text === undefined || text === '') return 1;
  const minutes = Number(text);
  if (!Number.isFinite(minutes) || minutes <= 0) {
    throw new RangeError(`SOAK_MINUTES must be a number above 0, got "${text}"`);
  }
  return minutes / DEFAULT_MINUTES;
}

/** Commands of random programs; `SOAK_COMMANDS` itself goes first. */
export function soakCommands(): number {
  const text = process.env.SOAK_COMMANDS;
  return text === undefined || text === '' ? Math.ceil(1_000_000 * soakScale()) : Number(text);
}
