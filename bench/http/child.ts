import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';

const STOP_TIMEOUT_MS = 5000;
const KEPT_OUTPUT = 4000;

/** A program in a process of its own: its messages, its last words, and its orderly end. */
export class Child {
  readonly #name: string;
  readonly #process: ChildProcess;
  readonly #exited: Promise<void>;
  #ended = false;
  #output = '';

  constructor(name: string, file: string, options: { execArgv: string[]; env: NodeJS.ProcessEnv }) {
    this.#name = name;
    // A Ctrl-C at the terminal goes to the program that was started there, which then ends its processes in order.
    this.#process = fork(file, [], { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
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

  /** Throws, with what the process said, if it is not running. */
  assertRunning(): void {
    if (!this.#ended) return;
    const status = this.#process.signalCode ?? `exit code ${this.#process.exitCode}`;
    throw new Error(`${this.#name} ended (${status}):\n${this.#output.trim() || '(it printed nothing)'}`);
  }

  /** Rejects, with what the process said, once it has ended. */
  async ended(): Promise<void> {
    await this.#exited;
    this.assertRunning();
  }

  /** Sends a message and resolves with the next one that comes back, which is no error. */
  async ask<T extends object>(message: object): Promise<T> {
    this.assertRunning();
    const stop = new AbortController();
    try {
      const answer = once(this.#process, 'message', { signal: stop.signal });
      this.#process.send(message);
      const result = await Promise.race([answer, this.ended()]);
      const said = result?.[0] as T | { error: string };
      if ('error' in said) throw new Error(said.error);
      return said;
    } finally {
      stop.abort();
    }
  }

  async stop(): Promise<void> {
    if (this.#ended) return;
    this.#process.kill('SIGTERM');
    const force = setTimeout(() => this.#process.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await this.#exited;
    clearTimeout(force);
  }
}
