import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, platform } from 'node:os';

/** Runs code without end, 50 ms at a time, so that it sees when its parent is gone. */
const SPIN = `process.on('disconnect', () => process.exit());
(function spin() { const until = Date.now() + 50; while (Date.now() < until); setImmediate(spin); })()`;

/**
 * The same in a session that yields to others. The kernel limits how often all processes together may ask for that, so
 * a spinner that was refused asks again.
 */
const YIELDING_SPIN = `(function yieldToOthers() {
  try { require('fs').writeFileSync('/proc/self/autogroup', '19'); }
  catch ({ code }) { if (code === 'EAGAIN') setTimeout(yieldToOthers, 100); }
})();
${SPIN}`;

/** Starts a process that takes all of a processor that it can get, and returns what ends it. */
export function startSpinner(): () => void {
  return start([process.execPath, '-e', SPIN]);
}

/**
 * Keeps the processors of a virtual machine from halting. The host wakes a halted processor, which can take
 * milliseconds: then a benchmark of two processes that wait for each other measures the host. A process on each
 * processor, of the class that runs only where nothing else would (`SCHED_IDLE`, sched(7)), takes no time from others.
 *
 * Where the kernel groups processes by session (autogroup, sched(7)), that class counts within its own session alone: a
 * server in another session gets half of the processor, and waits for it up to 4 ms. So each spinner has a session of
 * its own, of the lowest weight. Without the groups the figures are steadier still.
 *
 * @returns ends it.
 */
export function keepAwake(): () => void {
  if (platform() !== 'linux')
    throw new Error(`--awake needs Linux's scheduling class SCHED_IDLE, this is ${platform()}`);
  const stops = Array.from({ length: availableParallelism() }, (_, core) =>
    start(['taskset', '--cpu-list', `${core}`, 'chrt', '--idle', '0', process.execPath, '-e', YIELDING_SPIN], true),
  );
  return () => {
    for (const stop of stops) stop();
  };
}

/** Whether the kernel shares the processors out between sessions, and only then within them. */
export function areSessionsGrouped(): boolean {
  try {
    return readFileSync('/proc/sys/kernel/sched_autogroup_enabled', 'utf8').trim() === '1';
  } catch {
    return false;
  }
}

function start([command, ...args]: readonly string[], ownSession = false): () => void {
  const spinner: ChildProcess = spawn(command!, args, {
    detached: ownSession,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  return () => void spinner.kill('SIGKILL');
}
