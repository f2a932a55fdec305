// Run by exit.test.ts, in a process of its own: writes in the last moment of a process. Its orders are its argument.
import { once } from 'node:events';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { Redis } from 'ioredis';
import { coalesce } from 'ioredis-coalesce/coalesce';

export interface Orders {
  readonly kind: 'plain' | 'corked' | 'coalesced';
  readonly url: string;
  /** The server is stopped before the first write: a process that exits with unread replies resets the connection. */
  readonly serverPid: number;
  /** Keys that begin with it are written, see `writes`. */
  readonly prefix: string;
  /** Where the writes are issued. */
  readonly within: 'the tick' | 'an exit listener' | 'an exit listener of before';
  readonly end: 'process.exit()' | 'an uncaught exception' | 'SIGKILL after flush()' | 'terminate() after flush()';
  /** Whether all this happens in a worker thread, and the process goes on until that has ended. */
  readonly inThread?: boolean;
  /** What other code does with the listeners of `exit`, before the client is made. */
  readonly listeners?: 'one of before throws' | 'all are removed, those of an earlier client too';
  /** How many, each kind of command in turn. */
  readonly writes: number;
  readonly maxInFlight?: number;
}

const orders = JSON.parse(process.argv[2] ?? '') as Orders;
const { kind, url, serverPid, prefix, within, end, inThread, listeners, writes, maxInFlight } = orders;

function write(client: Redis): void {
  for (let index = 0; index < writes; index += 1) {
    const key = `${prefix}${index}`;
    const reply =
      index % 4 === 0
        ? client.set(key, 'fast')
        : index % 4 === 1
          ? client.call('SET', key, 'cold')
          : index % 4 === 2
            ? client.set(key, 'fast, é€')
            : client.pipeline().set(key, 'piped').exec();
    reply.catch(() => {});
  }
}

const ENDS: Record<Orders['end'], (client: Redis) => void> = {
  'process.exit()': () => process.exit(0),
  'an uncaught exception': () => {
    throw new Error('nobody catches it');
  },
  'SIGKILL after flush()': (client) => {
    flush(client);
    process.kill(process.pid, 'SIGKILL');
  },
  'terminate() after flush()': (client) => {
    flush(client);
    parentPort?.postMessage('terminate');
    // The turn does not end before the thread does.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  },
};

function flush(client: Redis): void {
  (client as Partial<{ coalescer: { flush(): void } }>).coalescer?.flush();
}

if (inThread && isMainThread) {
  const thread = new Worker(process.argv[1] as string, { argv: [process.argv[2]] });
  thread.once('message', () => void thread.terminate()).once('error', () => {});
} else await service();

async function service(): Promise<void> {
  const onExit = (): void => write(client);
  if (within === 'an exit listener of before') process.on('exit', onExit);
  if (listeners === 'one of before throws') {
    process.on('exit', () => {
      throw new Error('thrown by a listener of exit');
    });
  }
  if (listeners === 'all are removed, those of an earlier client too') {
    const earlier = new Redis(url, { retryStrategy: null as never });
    earlier.on('error', () => {});
    if (kind !== 'plain') coalesce(earlier);
    await once(earlier, 'ready');
    process.removeAllListeners('exit');
  }
  const client = new Redis(url, { retryStrategy: null as never });
  client.on('error', () => {});
  if (kind === 'coalesced') coalesce(client, maxInFlight === undefined ? {} : { maxInFlight });
  if (kind === 'corked') coalesce(client, { fastPath: false });
  client.once('ready', () => {
    if (within === 'an exit listener') process.on('exit', onExit);
    // In a turn of its own: the fast path is ready.
    setImmediate(() => {
      process.kill(serverPid, 'SIGSTOP');
      if (within === 'the tick') write(client);
      ENDS[end](client);
    });
  });
}
