import { sleep } from '../hosts.js';
import type { Scenario, Stage } from './scenario.js';
import { FATAL_DECODE_ERROR } from './tally.js';

const GONE = 'MaxRetriesPerRequestError';

/** Faults of the network, between a client and a server that is well. */
const NETWORK: readonly Scenario[] = [
  {
    name: 'replies in single bytes, then pieces of any size',
    errors: [],
    reconnects: false,
    async strike({ proxy }) {
      proxy.faults = { pieceOf: (random, left) => (left % 8 < 4 ? 1 : random.between(1, left)) };
      await sleep(50);
    },
  },
  {
    name: 'replies held back and merged',
    errors: [],
    reconnects: false,
    async strike({ proxy }) {
      proxy.faults = { delay: (random) => random.below(15) };
      await sleep(50);
    },
  },
  {
    name: 'resets in the middle of replies',
    errors: [],
    reconnects: true,
    async strike(stage) {
      await spoilConnections(stage, { resetAfterReplyBytes: (random) => random.between(300, 300_000) });
    },
  },
  {
    name: 'resets in the middle of requests',
    errors: [],
    reconnects: true,
    async strike(stage) {
      await spoilConnections(stage, { resetAfterRequestBytes: (random) => random.between(300, 300_000) });
    },
  },
  {
    name: 'resets, maxRetriesPerRequest 0',
    client: { maxRetriesPerRequest: 0 },
    errors: [GONE],
    reconnects: true,
    async strike(stage) {
      await spoilConnections(stage, { resetAfterReplyBytes: (random) => random.between(300, 300_000) });
    },
  },
  {
    name: 'resets, autoResendUnfulfilledCommands off',
    client: { autoResendUnfulfilledCommands: false },
    errors: [],
    reconnects: true,
    leavesOpen: { patience: 100 },
    async strike({ proxy, replies, random }) {
      await replies(random.between(1, 400));
      proxy.reset();
      // Workers go on without what was lost.
      await sleep(120);
    },
  },
  {
    name: 'half-open, then reset',
    errors: [],
    reconnects: true,
    async strike({ proxy, random, replies }) {
      await replies(random.between(1, 400));
      proxy.halfOpen();
      await sleep(60);
      proxy.reset();
    },
    heal: async ({ proxy }) => proxy.reset(),
  },
  {
    name: 'half-open, commandTimeout 100',
    client: { commandTimeout: 100 },
    errors: ['Error Command timed out'],
    reconnects: true,
    async strike({ proxy, random, replies }) {
      await replies(random.between(1, 400));
      proxy.halfOpen();
      await sleep(200);
      proxy.reset();
    },
    heal: async ({ proxy }) => proxy.reset(),
  },
  {
    name: 'garbage between replies',
    errors: [FATAL_DECODE_ERROR],
    reconnects: true,
    async strike(stage) {
      await spoilConnections(stage, { garbageAfterReplies: (random) => random.between(20, 400) });
    },
  },
];

/** What servers and those who run them do. */
const SERVER: readonly Scenario[] = [
  {
    name: 'server killed and restarted on its port',
    errors: [],
    possibleErrors: {
      kinds: ['ReplyError LOADING'],
      why: 'a server that has just started may still be loading',
    },
    reconnects: true,
    losesData: true,
    async strike({ restart, random, replies }) {
      await replies(random.between(1, 1000));
      await restart();
    },
  },
  {
    name: 'LOADING',
    // With it on, a client waits for the end of it before it sends anything.
    client: { enableReadyCheck: false },
    errors: ['ReplyError LOADING'],
    possibleErrors: {
      kinds: ['ReplyError EXECABORT'],
      why: 'a transaction whose MULTI came before the loading',
    },
    reconnects: true,
    async strike({ admin, random, replies }) {
      await replies(random.between(1, 400));
      await admin.call('DEBUG', 'POPULATE', '300', 'filling', '100');
      await admin.call('CONFIG', 'SET', 'key-load-delay', '500', 'loading-process-events-interval-bytes', '1024');
      await admin.call('DEBUG', 'RELOAD');
      await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    },
  },
  {
    name: 'CLIENT KILL',
    errors: [],
    reconnects: true,
    async strike({ admin, random, replies }) {
      await replies(random.between(1, 400));
      await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    },
  },
  {
    name: 'CLIENT PAUSE',
    errors: [],
    reconnects: false,
    async strike({ admin, random, replies }) {
      await replies(random.between(1, 400));
      await admin.call('CLIENT', 'PAUSE', '80', random.of(['ALL', 'WRITE']));
      await sleep(100);
    },
  },
  {
    name: 'maxmemory reached',
    errors: ['ReplyError OOM', 'ReplyError EXECABORT'],
    reconnects: false,
    async strike({ admin }) {
      await admin.call('CONFIG', 'SET', 'maxmemory', '1');
      await sleep(50);
      await admin.call('CONFIG', 'SET', 'maxmemory', '0');
      await sleep(50);
    },
  },
  {
    name: 'failover, READONLY',
    client: { reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 2 : false) },
    errors: [],
    possibleErrors: {
      kinds: ['ReplyError EXECABORT', 'ReplyError READONLY', 'ReplyError LOADING'],
      why: 'results inside transactions and pipelines are not sent again; a new replica loads what it is sent',
    },
    reconnects: true,
    losesData: true,
    async strike(stage) {
      const from = stage.proxy.target;
      const other = await stage.second();
      const to = from === stage.port ? other : stage.port;
      await stage.adminOf(to).call('REPLICAOF', 'NO', 'ONE');
      await stage.replies(200);
      // Open connections stay with the old master, which takes no more writes.
      stage.proxy.target = to;
      await stage.adminOf(from).call('REPLICAOF', '127.0.0.1', String(to));
      await sleep(200);
    },
  },
];

export const SCENARIOS: readonly Scenario[] = [...NETWORK, ...SERVER];

/** Sets faults that connections get when they begin. */
async function spoilConnections({ proxy }: Stage, faults: Stage['proxy']['faults']): Promise<void> {
  if (Object.keys(proxy.faults).length === 0) {
    proxy.faults = faults;
    proxy.reset();
  }
  await sleep(20);
}
