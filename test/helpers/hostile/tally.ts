/** What became of the commands of one run. */
export interface Tally {
  commands: number;
  replies: number;
  /** Rejections by kind; see `kindOf`. */
  readonly errors: Map<string, number>;
  /** Commands that have not settled. */
  open: number;
  /** Callbacks that were called a second time. */
  settledTwice: number;
  /** Replies that cannot be the caller's own, described. */
  readonly mismatches: string[];
}

export const newTally = (): Tally => ({
  commands: 0,
  replies: 0,
  errors: new Map(),
  open: 0,
  settledTwice: 0,
  mismatches: [],
});

export const FATAL_DECODE_ERROR = 'fatal decode error';

/** An error without what differs from case to case: the class, and of a server's error its code. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return `not an Error: ${String(error)}`;
  // What every host's decoder makes of bytes that are no reply; the rest of the text differs from host to host.
  if (error.message.endsWith('Please report this.')) return FATAL_DECODE_ERROR;
  if (error.name === 'ReplyError') return `ReplyError ${error.message.split(' ', 1)[0]}`;
  if (error.name === 'Error') return `Error ${error.message}`;
  return error.name;
}

export function countError(tally: Tally, error: unknown): void {
  const kind = kindOf(error);
  tally.errors.set(kind, (tally.errors.get(kind) ?? 0) + 1);
}

/** Counts a command until it settles, and looks at its reply. Resolves in any case. */
export async function follow(
  tally: Tally,
  what: string,
  command: Promise<unknown>,
  fault: (reply: unknown) => string | undefined,
): Promise<void> {
  tally.commands += 1;
  tally.open += 1;
  try {
    const reply = await command;
    tally.replies += 1;
    const found = fault(reply);
    if (found !== undefined) tally.mismatches.push(`${what}: ${found}`);
  } catch (error) {
    countError(tally, error);
  } finally {
    tally.open -= 1;
  }
}
