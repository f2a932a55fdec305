import { type ChildProcess, execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { keysOf } from '../variants/data.js';
import type { Idle, Measured, Probe, Workload } from '../variants/protocol.js';
import type { BenchServer } from './bench-server.js';
import { MissingError } from './environment.js';
import type { Runnable } from './variant-process.js';

const run = promisify(execFile);
const GUESS_PER_SECOND = 500_000;

/** `redis-benchmark` with one connection and a pipeline as deep as the burst: what the server could do. */
export class ServerLimit implements Runnable {
  readonly #server: BenchServer;
  #child: ChildProcess | undefined;
  #perSecond = GUESS_PER_SECOND;

  /** @throws {MissingError} where the tool is not there: it comes with the server, but not in every package */
  static async open(server: BenchServer): Promise<ServerLimit> {
    await run('redis-benchmark', ['--version']).catch(() => {
      throw new MissingError('redis-benchmark is not on PATH');
    });
    return new ServerLimit(server);
  }

  private constructor(server: BenchServer) {
    this.#server = server;
  }

  async prepare(workload: Workload, seconds: number): Promise<Idle> {
    this.#perSecond = (await this.#run(workload, seconds)).perSecond ?? this.#perSecond;
    return { seconds: 0, cpuSeconds: 0 };
  }

  async measure(workload: Workload, seconds: number): Promise<Measured> {
    const [sample, cpuUs] = await this.#server.cpuDuring(() => this.#run(workload, seconds));
    return { ...sample, serverCpuUs: cpuUs / sample.commands };
  }

  async probe(): Promise<Probe> {
    return {};
  }

  async close(): Promise<void> {}

  kill(): void {
    this.#child?.kill('SIGKILL');
  }

  async #run(workload: Workload, seconds: number): Promise<Measured> {
    if (workload.kind !== 'burst' || workload.operation !== 'get') {
      throw new Error('redis-benchmark can be compared with bursts of GETs only');
    }
    const { size, data } = workload;
    const commands = Math.max(1, Math.round((this.#perSecond * seconds) / size)) * size;
    const key = keysOf(this.#server.prefix, data, 'get')[0]!;
    const running = run('redis-benchmark', [
      ...['-u', this.#server.url],
      ...['-c', '1', '-P', `${size}`, '-n', `${commands}`, '--csv'],
      ...['GET', key],
    ]);
    this.#child = running.child;
    // "test","rps",…: a heading, and one line with the figures.
    const { stdout } = await running;
    const perSecond = Number(/^"GET [^"]*","([\d.]+)"/m.exec(stdout)?.[1]);
    if (!(perSecond > 0)) throw new Error(`expected requests per second from redis-benchmark --csv, got ${stdout}`);
    return { commands, perSecond };
  }
}
