import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { connect, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerBinary } from './server-binary.js';

/** Nothing listens on anything but loopback. */
export const HOST = '127.0.0.1';
const START_TIMEOUT = 15_000;
const STOP_TIMEOUT = 5_000;

export class PortTakenError extends Error {
  constructor(port: number) {
    super(`the Redis server could not listen on ${HOST}:${port}: the port is taken`);
    this.name = 'PortTakenError';
  }
}

/** The servers to take down with this process. */
const running = new Set<ServerProcess>();
let exitHookSet = false;

// The pipe at its stdin closes when this process ends, even by SIGKILL; a line on it means that there is nothing left
// to clean up. It is a session of its own, so that a Ctrl-C at the terminal does not reach it.
const WATCHDOG = 'read -r _ || { kill -9 "$1"; rm -rf "$2"; }';

/** One server, its folder and its watchdog. */
export class ServerProcess {
  readonly pid: number;
  readonly #folder: string;
  readonly #child: ChildProcess;
  readonly #watchdog: ChildProcess;
  readonly #exited: Promise<void>;
  readonly #port: number;
  readonly #binary: ServerBinary;
  #ended = false;
  #log = '';

  constructor(port: number, binary: ServerBinary, extra: readonly string[]) {
    this.#port = port;
    this.#binary = binary;
    // The server reports its folder with symbolic links resolved.
    this.#folder = realpathSync(mkdtempSync(join(tmpdir(), 'ioredis-coalesce-redis-')));
    const log = openSync(join(this.#folder, 'server.log'), 'w');
    this.#child = spawn(binary.path, [...serverArguments(port, this.#folder, binary), ...extra], {
      cwd: this.#folder,
      detached: true,
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    this.#child.once('error', () => {});
    if (this.#child.pid === undefined) {
      rmSync(this.#folder, { recursive: true, force: true });
      throw new Error(`could not start ${binary.path}`);
    }
    this.pid = this.#child.pid;
    this.#watchdog = spawn('/bin/sh', ['-c', WATCHDOG, 'sh', String(this.pid), this.#folder], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    this.#child.unref();
    this.#watchdog.unref();
    if (this.#watchdog.stdin instanceof Socket) {
      this.#watchdog.stdin.unref();
    }
    this.#watchdog.once('error', () => {});
    this.#watchdog.stdin?.once('error', () => {});
    this.#exited = new Promise((settle) => {
      this.#child.once('exit', () => {
        this.#release();
        settle();
      });
    });
    running.add(this);
    if (!exitHookSet) {
      exitHookSet = true;
      process.on('exit', () => {
        for (const server of running) server.abandon();
      });
    }
  }

  async ready(): Promise<void> {
    const deadline = Date.now() + START_TIMEOUT;
    while (Date.now() < deadline) {
      if (this.#ended) {
        if (/address already in use/i.test(this.#log)) {
          throw new PortTakenError(this.#port);
        }
        throw new Error(`${this.#binary.path} ended before it was ready:\n${this.#log || '(it printed nothing)'}`);
      }
      if (await Promise.race([answers(this.#port, this.#folder), this.#exited])) {
        return;
      }
      await sleep(15);
    }
    throw new Error(`${this.#binary.path} did not answer PING on ${HOST}:${this.#port} within ${START_TIMEOUT} ms`);
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (this.#ended) {
      return;
    }
    // Otherwise a program with nothing else to do would end while it waits here.
    this.#child.ref();
    this.#child.kill(signal);
    const force = setTimeout(() => this.#child.kill('SIGKILL'), STOP_TIMEOUT);
    await this.#exited;
    clearTimeout(force);
  }

  /** At process exit, where nothing asynchronous runs any more. */
  abandon(): void {
    this.#child.kill('SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #release(): void {
    this.#ended = true;
    running.delete(this);
    try {
      this.#log = readFileSync(join(this.#folder, 'server.log'), 'utf8').trim().slice(-2000);
    } catch {
      // The folder may be gone already; the log is only there for the error message.
    }
    rmSync(this.#folder, { recursive: true, force: true });
    this.#watchdog.stdin?.end('done\n');
  }
}

function serverArguments(port: number, folder: string, { version }: ServerBinary): string[] {
  const args = ['--port', String(port), '--bind', HOST, '--dir', folder];
  args.push('--save', '', '--appendonly', 'no', '--daemonize', 'no');
  // Redis 7.0 closed the DEBUG command by default, and has this switch since; every Valkey is younger.
  if (Number.parseInt(version, 10) >= 7) {
    args.push('--enable-debug-command', 'local');
  }
  return args;
}

/**
 * Whether a server answers on the port, and is the one started in that folder rather than another that took the port.
 */
function answers(port: number, folder: string): Promise<boolean> {
  return new Promise((settle) => {
    const socket = connect({ port, host: HOST });
    let reply = '';
    const finish = (ok: boolean): void => {
      settle(ok);
      socket.destroy();
    };
    socket.setTimeout(1000, () => finish(false));
    socket.on('error', () => finish(false));
    socket.on('close', () => finish(false));
    socket.on('connect', () => socket.write('PING\r\nCONFIG GET dir\r\n'));
    socket.on('data', (chunk) => {
      reply += chunk.toString();
      // With a password set there is no asking for the folder, but there is an answer.
      if (reply.includes(`\r\n${folder}\r\n`) || reply.startsWith('-NOAUTH')) {
        finish(true);
      }
    });
  });
}
