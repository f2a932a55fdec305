/** Loaded before an application: prints at the end how many connections had the cork, and what left on them. */
import { subscribe } from 'node:diagnostics_channel';

const seen = { corked: 0, others: 0, writes: 0, batches: 0 };
subscribe('tracing:ioredis-coalesce:connection:start', ({ change, mode }) => {
  if (change === 'attached') seen[mode === 'cork' ? 'corked' : 'others'] += 1;
});
subscribe('tracing:ioredis-coalesce:batch:start', ({ size }) => {
  seen.writes += size;
  seen.batches += 1;
});
process.on('exit', () => process.stderr.write(`corked: ${JSON.stringify(seen)}\n`));
