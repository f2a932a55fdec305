import { type ChildProcess, spawn } from 'node:child_process';
import { availableParallelism, platform } from 'node:os';

/** Runs code without end, 50 ms at a time, so that it sees when its parent is gone. */
const SPIN = `process.on('disconnect', () => process.exit());
(function spin() { const until = Date.now() + 50; while (Date.now() < until); setImmediate(spin); })()`;

/**
 * Starts a process that takes all of a processor that it can get.
 *
 * @param prefix - the command that runs it, `taskset` for example.
 * @returns ends it.
 */
export function startSpinner(...prefix: readonly string[]): () => void {
  const [command, ...args] = [...prefix, process.execPath, '-e', SPIN];
  const spinner: ChildProcess = spawn(command!, args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  return () => void spinner.kill('SIGKILL');
}

/**
 * Keeps the processors of a virtual machine from halting. The host wakes a halted processor, which can take
 * milliseconds: then a benchmark of two processes that wait for each other measures the host. A process on each
 * processor, of the class that runs only where nothing else would (`SCHED_IDLE`, sched(7)), takes no time from others.
 *
 * @returns ends it.
 */
export function keepAwake(): () => void {
  if (platform() !== 'linux')
    throw new Error(`--awake needs Linux's scheduling class SCHED_IDLE, this is ${platform()}`);
  const stops = Array.from({ length: availableParallelism() }, (_, core) =>
    startSpinner('taskset', '--cpu-list', `${core}`, 'chrt', '--idle', '0'),
  );
  return () => {
    for (const stop of stops) stop();
  };
}
