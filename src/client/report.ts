/** `IOREDIS_COALESCE=stats`: one line per client on standard error when the process exits, and on SIGUSR2. */
import { writeSync } from 'node:fs';
import type { Coalesced } from '../handle.js';
import { isHostCluster, startupNodesOf } from '../host/cluster.js';
import type { HasOptions } from '../host/types.js';
import type { CoalescerStats } from '../stats.js';

const STANDARD_ERROR = 2;

/**
 * By their names, which are made at once: code may change anything of a client later. They are kept until the process
 * ends: a client's line is printed after it has been closed, too.
 */
const clients = new Map<object, string>();

/** Adds a coalesced client, or a Cluster. */
export function report(client: object): void {
  clients.set(client, nameOf(client));
  if (clients.size > 1) return;
  process.on('exit', print);
  // Windows has no such signal.
  if (process.platform !== 'win32') process.on('SIGUSR2', print);
}

function print(): void {
  for (const [client, name] of clients) {
    const { coalescer } = client as Partial<Coalesced>;
    const stats = coalescer?.stats();
    // A client that was made plain before its first command.
    if (stats === undefined || (!coalescer?.enabled && stats.commands === 0)) continue;
    writeSync(STANDARD_ERROR, `ioredis-coalesce: ${line(name, stats)}\n`);
  }
}

/** `127.0.0.1:6379/0: 1200 commands, 100 batches, 12.0 per batch, 98 % hot; not hot: connection 20, arguments 4`. */
function line(name: string, { commands, hotCommands, batches, fallThroughs }: CoalescerStats): string {
  if (commands === 0) return `${name}: no commands`;
  const reasons = Object.entries(fallThroughs)
    .filter(([, count]) => count > 0)
    .map(([reason, count]) => `${reason} ${count}`);
  const cold = reasons.length > 0 ? `; not hot: ${reasons.join(', ')}` : '';
  const mean = (commands / Math.max(batches, 1)).toFixed(1);
  const hot = Math.floor((100 * hotCommands) / commands);
  return `${name}: ${commands} commands, ${batches} batches, ${mean} per batch, ${hot} % hot${cold}`;
}

/** Where a client or Cluster connects to, without its password. */
function nameOf(client: object): string {
  if (isHostCluster(client)) return `Cluster of ${startupNodesOf(client).length} startup nodes`;
  const { path, host, port, db, connectionName } = (client as HasOptions).options;
  const server = path ?? `${host}:${port}`;
  return `${connectionName ? `${String(connectionName)} ` : ''}${server}/${db ?? 0}`;
}
