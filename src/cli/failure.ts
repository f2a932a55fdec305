/** Why a command of the CLI cannot do its work, in one line for the user. */
export class Failure extends Error {}

/** Ctrl-C, or a SIGTERM. */
export class Interrupted extends Error {}
