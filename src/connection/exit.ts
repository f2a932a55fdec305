/**
 * A process that exits sends every command it has issued, as a plain client would have done by then: pending bytes of
 * each connection are written when the process emits `exit`, and commands issued by listeners of `exit` at once.
 */
interface Drains {
  drain(reason: 'exit'): void;
}

const connections = new Set<Drains>();
let exiting = false;
let watching = false;

export function isExiting(): boolean {
  return exiting;
}

/** Drains `connection` at exit, until the returned function is called. */
export function drainAtExit(connection: Drains): () => void {
  if (!watching) {
    watching = true;
    process.on('exit', () => {
      exiting = true;
      for (const each of connections) each.drain('exit');
    });
  }
  connections.add(connection);
  return () => connections.delete(connection);
}
