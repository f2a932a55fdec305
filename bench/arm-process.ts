import { type ChildProcess, fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { BenchServer } from './server.js';
import type { Answer, ArmId, ClientOptions, Figures, Idle, Probe, Request, Sample, Workload } from './workload.js';

/** What a round is asked of: an arm's process, or the server's own benchmark tool. */
export interface Contender {
  prepare(workload: Workload, seconds: number, verify: boolean): Promise<Idle>;
  measure(workload: Workload, seconds: number): Promise<Sample>;
  probe(workload: Workload, seconds: number): Promise<Probe>;
  close(): Promise<void>;
  kill(): void;
}

type AnswerOf<T extends Answer['type']> = Extract<Answer, { type: T }>;

const ANSWER_TIMEOUT_MS = 120_000;

const OWN_FOLDER = fileURLToPath(new URL('../node_modules/.cache/ioredis-coalesce-bench/', import.meta.url));

/**
 * Bundles the arms into plain JavaScript, with every package left outside, and returns the file. Plain `node` then runs
 * it as it runs a user's service: `ioredis-coalesce` resolves to the built package (tsx would follow tsconfig's `paths`
 * to the sources), and no loader's helpers are in the measured code. In `node_modules/.cache`, packages are found.
 */
export async function buildArms(folder = OWN_FOLDER): Promise<string> {
  if (!existsSync(new URL('../dist/index.js', import.meta.url))) {
    throw new Error('dist/index.js is missing: run "npm run build" first');
  }
  await mkdir(folder, { recursive: true });
  const outfile = join(folder, `arm-${process.pid}.mjs`);
  await build({
    entryPoints: [fileURLToPath(new URL('./arms/main.ts', import.meta.url))],
    outfile,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    // Not the project's: its `paths` point to the sources.
    tsconfigRaw: {},
  });
  return outfile;
}

/** An arm's process, from the parent's side: one request at a time. */
export class ArmProcess implements Contender {
  readonly #arm: ArmId;
  readonly #child: ChildProcess;
  readonly #server: BenchServer;
  #settle: { resolve(answer: Answer): void; reject(error: Error): void } | undefined;

  /**
   * @param options - beside those that the server asks for
   * @param url - where not the server's own: a proxy in front of it
   */
  static async open(
    arm: ArmId,
    file: string,
    server: BenchServer,
    options: ClientOptions = {},
    url = server.url,
  ): Promise<ArmProcess> {
    const opened = new ArmProcess(arm, file, server);
    try {
      const { packagePath } = await opened.#ask(
        { type: 'open', arm, url, prefix: server.prefix, options: { ...server.clientOptions, ...options } },
        'opened',
      );
      if (packagePath !== undefined && !packagePath.includes('/dist/')) {
        throw new Error(`arm ${arm} should measure the built package, got ${packagePath}`);
      }
      return opened;
    } catch (error) {
      opened.kill();
      throw error;
    }
  }

  private constructor(arm: ArmId, file: string, server: BenchServer) {
    this.#arm = arm;
    this.#server = server;
    // Without tsx's own arguments, which fork() would pass on.
    this.#child = fork(file, { execArgv: ['--expose-gc'], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.#child.on('message', (answer: Answer) => this.#settle?.resolve(answer));
    this.#child.on('error', (error) => this.#settle?.reject(error));
    this.#child.on('exit', (code, signal) => {
      this.#settle?.reject(new Error(`arm ${arm} ended early: ${signal ?? `exit code ${code}`}`));
    });
  }

  async prepare(workload: Workload, seconds: number, verify: boolean): Promise<Idle> {
    return (await this.#ask({ type: 'prepare', workload, seconds, verify }, 'prepared')).idle;
  }

  async measure(workload: Workload, seconds: number): Promise<Sample> {
    const before = await this.#server.cpuUs();
    const { sample } = await this.#ask({ type: 'measure', workload, seconds }, 'measured');
    const serverCpuUs = (await this.#server.cpuUs()) - before;
    return { ...sample, serverCpuUs: serverCpuUs / sample.commands };
  }

  async probe(workload: Workload, seconds: number): Promise<Probe> {
    return (await this.#ask({ type: 'probe', workload, seconds }, 'probed')).probe;
  }

  async task(name: string, options: Readonly<Record<string, unknown>>): Promise<Figures> {
    return (await this.#ask({ type: 'task', name, options }, 'done')).figures;
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
    if (answer.type === 'failed') throw new Error(`arm ${this.#arm}, ${request.type}: ${answer.message}`);
    if (answer.type !== expected) throw new Error(`arm ${this.#arm} should say "${expected}", got "${answer.type}"`);
    return answer as AnswerOf<T>;
  }

  async #send(request: Request): Promise<Answer> {
    const late = new Error(`arm ${this.#arm} did not answer "${request.type}" within ${ANSWER_TIMEOUT_MS / 1000} s`);
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
