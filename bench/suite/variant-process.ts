import { type ChildProcess, fork } from 'node:child_process';
import type {
  Answer,
  ClientOptions,
  Idle,
  Measured,
  Measurements,
  Probe,
  Request,
  VariantId,
  Workload,
} from '../variants/protocol.js';
import type { BenchServer } from './bench-server.js';
import { MissingError } from './environment.js';

/** What a round is asked of: a variant's process, or the server's own benchmark tool. */
export interface Runnable {
  prepare(workload: Workload, seconds: number, verify: boolean): Promise<Idle>;
  measure(workload: Workload, seconds: number): Promise<Measured>;
  probe(workload: Workload, seconds: number): Promise<Probe>;
  close(): Promise<void>;
  kill(): void;
}

type AnswerOf<T extends Answer['type']> = Extract<Answer, { type: T }>;

const ANSWER_TIMEOUT_MS = 120_000;

/** A variant's process, from the parent's side: one request at a time. */
export class VariantProcess implements Runnable {
  readonly #variant: VariantId;
  readonly #child: ChildProcess;
  readonly #server: BenchServer;
  #settle: { resolve(answer: Answer): void; reject(error: Error): void } | undefined;

  /**
   * @param options - beside those that the server asks for
   * @param url - where not the server's own: a proxy in front of it
   * @throws {MissingError} where the package has no such variant yet
   */
  static async open(
    variant: VariantId,
    file: string,
    server: BenchServer,
    options: ClientOptions = {},
    url = server.url,
  ): Promise<VariantProcess> {
    const opened = new VariantProcess(variant, file, server);
    try {
      const { packagePath, unsupported } = await opened.#ask(
        { type: 'open', variant, url, prefix: server.prefix, options: { ...server.clientOptions, ...options } },
        'opened',
      );
      if (unsupported !== undefined) throw new MissingError(`${variant} is not supported (${unsupported})`);
      if (packagePath !== undefined && !packagePath.includes('/dist/')) {
        throw new Error(`${variant} should measure the built package, got ${packagePath}`);
      }
      return opened;
    } catch (error) {
      opened.kill();
      throw error;
    }
  }

  private constructor(variant: VariantId, file: string, server: BenchServer) {
    this.#variant = variant;
    this.#server = server;
    // Without tsx's own arguments, which fork() would pass on.
    this.#child = fork(file, { execArgv: ['--expose-gc'], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.#child.on('message', (answer: Answer) => this.#settle?.resolve(answer));
    this.#child.on('error', (error) => this.#settle?.reject(error));
    this.#child.on('exit', (code, signal) => {
      this.#settle?.reject(new Error(`${variant} ended early: ${signal ?? `exit code ${code}`}`));
    });
  }

  async prepare(workload: Workload, seconds: number, verify: boolean): Promise<Idle> {
    return (await this.#ask({ type: 'prepare', workload, seconds, verify }, 'prepared')).idle;
  }

  async measure(workload: Workload, seconds: number): Promise<Measured> {
    const before = await this.#server.cpuUs();
    const { sample } = await this.#ask({ type: 'measure', workload, seconds }, 'measured');
    const serverCpuUs = (await this.#server.cpuUs()) - before;
    return { ...sample, serverCpuUs: serverCpuUs / sample.commands };
  }

  async probe(workload: Workload, seconds: number): Promise<Probe> {
    return (await this.#ask({ type: 'probe', workload, seconds }, 'probed')).probe;
  }

  async task(name: string, options: Readonly<Record<string, unknown>>): Promise<Measurements> {
    return (await this.#ask({ type: 'task', name, options }, 'done')).measurements;
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  async close(): Promise<void> {
    await this.#ask({ type: 'close' }, 'closed');
    this.#child.disconnect();
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  async #ask<T extends Answer['type']>(request: Request, expected: T): Promise<AnswerOf<T>> {
    const answer = await this.#send(request);
    if (answer.type === 'failed') throw new Error(`${this.#variant}, ${request.type}: ${answer.message}`);
    if (answer.type !== expected) throw new Error(`${this.#variant} should say "${expected}", got "${answer.type}"`);
    return answer as AnswerOf<T>;
  }

  async #send(request: Request): Promise<Answer> {
    const late = new Error(`${this.#variant} did not answer "${request.type}" within ${ANSWER_TIMEOUT_MS / 1000} s`);
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<Answer>((resolve, reject) => {
        this.#settle = { resolve, reject };
        timer = setTimeout(() => reject(late), ANSWER_TIMEOUT_MS);
        this.#child.send(request, (error) => {
          if (error) reject(error);
        });
      });
    } finally {
      clearTimeout(timer);
    }
  }
}
