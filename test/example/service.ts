import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('../../examples/fastify-app/', import.meta.url));
const ROOT_CONFIG = fileURLToPath(new URL('../../tsconfig.json', import.meta.url));

export interface StartOptions {
  env?: Record<string, string>;
  /** Run in the example's folder. @default what is behind `npm start` */
  command?: [file: string, ...args: string[]];
  /** What it says when it listens; the group is where. @default the service's log line */
  announces?: RegExp;
}

/** The example in a process of its own, as its users run it. */
export class ExampleService {
  readonly #process: ChildProcess;
  readonly #exited: Promise<number | null>;
  readonly #announces: RegExp;
  #output = '';

  constructor({ env, command = [process.execPath, 'start.mjs', 'src/main.ts'], announces }: StartOptions) {
    this.#announces = announces ?? /Server listening at (http:\/\/[^"\s]+)/;
    const [file, ...args] = command;
    const { REDIS_URL: _, ...inherited } = process.env;
    this.#process = spawn(file, args, {
      cwd: FOLDER,
      // A group of its own, so that what `npm` started can be ended with it.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...inherited,
        NODE_ENV: 'production',
        PORT: '0',
        // `ioredis-coalesce` is its sources as they are now, whatever was built when.
        TSX_TSCONFIG_PATH: ROOT_CONFIG,
        ...env,
      },
    });
    const keep = (chunk: Buffer): void => {
      this.#output += chunk.toString();
    };
    this.#process.stdout?.on('data', keep);
    this.#process.stderr?.on('data', keep);
    this.#exited = once(this.#process, 'close').then(([code]) => code as number | null);
  }

  get output(): string {
    return this.#output;
  }

  get exited(): Promise<number | null> {
    return this.#exited;
  }

  /** Resolves with where it listens, as it says itself. */
  async listening(): Promise<string> {
    const stop = new AbortController();
    const ended = this.#exited.then((code) => {
      throw new Error(`expected the example to listen, it ended with ${code}:\n${this.#output}`);
    });
    try {
      return await Promise.race([ended, this.#origin(stop.signal)]);
    } finally {
      stop.abort();
      ended.catch(() => {});
    }
  }

  /** Signals the process itself, as a service manager does. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.#process.kill(signal);
    return this.#exited;
  }

  /** For `afterAll`: whatever is left of it. */
  async destroy(): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null && this.#process.pid !== undefined) {
      process.kill(-this.#process.pid, 'SIGKILL');
      await this.#exited;
    }
  }

  async #origin(signal: AbortSignal): Promise<string> {
    for (;;) {
      const origin = this.#announces.exec(this.#output)?.[1];
      if (origin !== undefined) {
        return origin;
      }
      await once(this.#process.stdout!, 'data', { signal });
    }
  }
}
