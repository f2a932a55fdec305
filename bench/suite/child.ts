import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

const STOP_TIMEOUT_MS = 5000;
const ANSWER_TIMEOUT_MS = 120_000;
const KEPT_OUTPUT = 4000;

interface ChildOptions {
  readonly execArgv?: string[];
  readonly env?: NodeJS.ProcessEnv;
  /** The binary of Node. @default this process's */
  readonly execPath?: string;
  /** Whether what it prints goes to the terminal; else it is kept, for when the process ends too early. */
  readonly prints?: boolean;
}

/** A program in a process of its own: its answers, its last words, and its orderly end. */
export class Child {
  readonly #name: string;
  readonly #process: ChildProcess;
  readonly #exited: Promise<void>;
  #ended = false;
  #output = '';

  constructor(name: string, file: string, options: ChildOptions = {}) {
    const { execArgv = [], env = process.env, execPath = process.execPath, prints = false } = options;
    this.#name = name;
    const output = prints ? 'inherit' : 'pipe';
    // A Ctrl-C at the terminal goes to the program that was started there, which then ends its processes in order.
    this.#process = fork(file, { execArgv, execPath, env, detached: true, stdio: ['ignore', output, output, 'ipc'] });
    const keep = (chunk: Buffer): void => {
      this.#output = (this.#output + chunk.toString()).slice(-KEPT_OUTPUT);
    };
    this.#process.stdout?.on('data', keep);
    this.#process.stderr?.on('data', keep);
    this.#process.on('error', (error) => keep(Buffer.from(`${error.message}\n`)));
    this.#exited = once(this.#process, 'close').then(() => {
      this.#ended = true;
    });
  }

  get pid(): number {
    return this.#process.pid ?? -1;
  }

  /** Throws, with what the process said, if it is not running. */
  assertRunning(): void {
    if (!this.#ended) return;
    const status = this.#process.signalCode ?? `exit code ${this.#process.exitCode}`;
    throw new Error(`${this.#name} ended (${status})${this.#output === '' ? '' : `:\n${this.#output.trim()}`}`);
  }

  /** Rejects, with what the process said, once it has ended. */
  async ended(): Promise<never> {
    await this.#exited;
    this.assertRunning();
    throw new Error(`${this.#name} ended`);
  }

  /** Sends a message and resolves with the next one that comes back, which is no error. */
  async ask<T extends object>(message: object): Promise<T> {
    this.assertRunning();
    const stop = new AbortController();
    const { signal } = stop;
    try {
      const answer = once(this.#process, 'message', { signal });
      this.#process.send(message);
      const late = sleep(ANSWER_TIMEOUT_MS, [{ error: `no answer within ${ANSWER_TIMEOUT_MS / 1000} s` }], { signal });
      const [said] = (await Promise.race([answer, late, this.ended()])) as [T | { error: string }];
      if ('error' in said) throw new Error(`${this.#name}: ${said.error}`);
      return said;
    } finally {
      stop.abort();
    }
  }

  async stop(): Promise<void> {
    if (this.#ended) return;
    this.#process.kill('SIGTERM');
    const force = setTimeout(() => this.kill(), STOP_TIMEOUT_MS);
    await this.#exited;
    clearTimeout(force);
  }

  /** At once. */
  kill(): void {
    this.#process.kill('SIGKILL');
  }
}

/** In the process itself: answers what its parent asks, one request at a time, and ends with the parent. */
export function answerParent<T>(answer: (request: T) => Promise<object>): void {
  process.on('disconnect', () => process.exit());
  process.on('message', (request: T) => {
    void answer(request)
      .catch((error: unknown) => ({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }))
      .then((said) => process.send?.(said));
  });
}
