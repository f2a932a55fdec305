import type { ChildProcess } from 'node:child_process';
import { keysOf } from '../variants/data.js';
import type { Workload } from '../variants/protocol.js';
import type { BenchServer } from './bench-server.js';
import { findTool, run } from './tool.js';
import { NEVER_IDLE, type Runnable, withServerCpu } from './variant-process.js';

const GUESS_PER_SECOND = 500_000;

/**
 * `redis-benchmark` with one connection and a pipeline as deep as the burst: what the server could do.
 *
 * @throws {MissingError} where the tool is not there: it comes with the server, but not in every package
 */
export async function openServerLimit(server: BenchServer): Promise<Runnable> {
  await findTool('redis-benchmark');
  let child: ChildProcess | undefined;
  let guess = GUESS_PER_SECOND;
  const measure = async (workload: Workload, seconds: number) => {
    if (workload.kind !== 'burst' || workload.operation !== 'get') {
      throw new Error('redis-benchmark can be compared with bursts of GETs only');
    }
    const { size, data } = workload;
    const commands = Math.max(1, Math.round((guess * seconds) / size)) * size;
    const running = run('redis-benchmark', [
      ...['-u', server.url],
      ...['-c', '1', '-P', `${size}`, '-n', `${commands}`, '--csv'],
      ...['GET', keysOf(server.prefix, data, 'get')[0]!],
    ]);
    child = running.child;
    // "test","rps",…: a heading, and one line with the figures.
    const { stdout } = await running;
    const perSecond = Number(/^"GET [^"]*","([\d.]+)"/m.exec(stdout)?.[1]);
    if (!(perSecond > 0)) throw new Error(`expected requests per second from redis-benchmark --csv, got ${stdout}`);
    return { commands, perSecond };
  };
  return {
    async prepare(workload, seconds) {
      guess = (await measure(workload, seconds)).perSecond;
      return NEVER_IDLE;
    },
    measure: (workload, seconds) => withServerCpu(server, () => measure(workload, seconds)),
    probe: async () => ({}),
    close: async () => {},
    kill: () => void child?.kill('SIGKILL'),
  };
}
