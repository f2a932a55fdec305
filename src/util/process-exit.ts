import { processWide } from './process-wide.js';

/**
 * Functions to call at exit, shared by all loaded copies of the package, so that an unused copy can be collected. An
 * array, because the tables that a growing `Set` has discarded keep ended connections alive until a full collection;
 * inside a `Set`, see `processWide`.
 */
const [drains = []] = processWide('drains-at-exit', () => new Set<(() => void)[]>([[]]));
/** At most one: the listener of the first copy. */
const listeners = processWide('exit-listeners', () => new Set<() => void>());
/** True as soon as the process emits `exit`. Later is too late to send. */
export let exiting = false;

/**
 * An exiting process sends every command it has issued, as a plain client would have done already: it writes the
 * pending bytes of each connection at `exit`, and commands issued by listeners of `exit` at once.
 *
 * There is one listener for any number of loaded copies of this package, and none while there are no connections.
 *
 * @param send - sends the pending bytes of one connection. Called at exit, unless the returned function was called.
 */
export function drainAtExit(send: () => void): () => void {
  const drain = () => {
    exiting = true;
    send();
  };
  drains.push(drain);
  if (!listens()) {
    listeners.clear();
    listeners.add(drainAll);
    // First, because a listener that throws prevents later ones.
    process.prependListener('exit', drainAll);
  }
  return () => {
    const index = drains.indexOf(drain);
    if (index >= 0) drains.splice(index, 1);
    if (drains.length > 0) return;
    for (const listener of listeners) process.off('exit', listener);
    listeners.clear();
  };
}

/** Other code may have removed all listeners. */
function listens(): boolean {
  const present = process.listeners('exit') as unknown[];
  return [...listeners].some((listener) => present.includes(listener));
}

function drainAll(): void {
  for (const drain of [...drains]) drain();
}
