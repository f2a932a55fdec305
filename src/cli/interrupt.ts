/** Why a command of the CLI cannot do its work, in one line for the user. */
export class Failure extends Error {}

/** Ctrl-C, or a SIGTERM. */
export class Interrupted extends Error {}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Aborts at the first Ctrl-C or SIGTERM, so that there is time to clean up; the second one ends the process. */
export function interruptSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of SIGNALS) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(130);
      controller.abort(new Interrupted(`interrupted by ${name}`));
    });
  }
  return controller.signal;
}

/** Settles as `work` does, or rejects as soon as `signal` aborts. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort);
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    work.catch(() => {});
  }
}
