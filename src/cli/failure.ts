/** What keeps a command from its work, in one line for the person in front of the terminal. */
export class Failure extends Error {}

/** Ctrl-C, or a SIGTERM. */
export class Interrupted extends Error {}
