import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** The request to the proxy process, and its answer. */
export interface DistanceRequest {
  redisUrl: string;
  roundTripMs: number;
}
export type DistanceMessage = { port: number } | { error: string };

/** A Redis made more distant by a delaying proxy on loopback, in its own process. */
export class Distance {
  /** The URL for clients. */
  readonly url: string;
  readonly #process: ChildProcess;

  static async open(request: DistanceRequest): Promise<Distance> {
    const process = forkProxy();
    try {
      process.send(request);
      const [message] = (await Promise.race([once(process, 'message'), ended(process)])) as [DistanceMessage];
      if ('error' in message) throw new Error(message.error);
      return new Distance(process, urlAt(message.port, request.redisUrl));
    } catch (error) {
      process.kill('SIGKILL');
      throw error;
    }
  }

  private constructor(process: ChildProcess, url: string) {
    this.#process = process;
    this.url = url;
  }

  close(): void {
    this.#process.kill('SIGKILL');
  }
}

function forkProxy(): ChildProcess {
  return fork(fileURLToPath(new URL('./distance-worker.ts', import.meta.url)), [], {
    execArgv: ['--import', import.meta.resolve('tsx')],
    env: { ...process.env, NODE_OPTIONS: '' },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
}

async function ended(process: ChildProcess): Promise<never> {
  const [code, signal] = await once(process, 'exit');
  throw new Error(`the proxy's process ended (${signal ?? `exit code ${code}`})`);
}

/** Keeps user, password and database; the proxy speaks TLS with the server, if that is required. */
function urlAt(port: number, redisUrl: string): string {
  const url = new URL(redisUrl);
  url.protocol = 'redis:';
  url.hostname = '127.0.0.1';
  url.port = String(port);
  return url.href;
}
