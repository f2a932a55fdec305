/** Hocuspocus: two servers that share a document through Redis, and twelve clients that write into it at once. */
import { Redis as RedisExtension } from '@hocuspocus/extension-redis';
import { HocuspocusProvider, HocuspocusProviderWebsocket } from '@hocuspocus/provider';
import { Server } from '@hocuspocus/server';
import WebSocket from 'ws';
import * as Y from 'yjs';

const { hostname: host, port } = new URL(process.env.REDIS_URL);
const CLIENTS = 12;
const WORDS = 10;

async function serve() {
  const server = new Server({
    quiet: true,
    address: '127.0.0.1',
    port: 0,
    stopOnSignals: false,
    extensions: [new RedisExtension({ host, port: Number(port) })],
  });
  await server.listen();
  return server;
}

const servers = await Promise.all([serve(), serve()]);

async function connect(index) {
  const { port: own } = servers[index % 2].httpServer.address();
  const websocketProvider = new HocuspocusProviderWebsocket({
    url: `ws://127.0.0.1:${own}`,
    WebSocketPolyfill: WebSocket,
  });
  const document = new Y.Doc();
  const provider = new HocuspocusProvider({ websocketProvider, name: 'shared', document });
  provider.attach();
  await new Promise((resolve) => void provider.on('synced', resolve));
  return { document, provider, websocketProvider };
}

const clients = await Promise.all(Array.from({ length: CLIENTS }, (_, index) => connect(index)));
for (let word = 0; word < WORDS; word += 1) {
  for (const [index, { document }] of clients.entries()) document.getMap('words').set(`${index}.${word}`, index * word);
  await new Promise((resolve) => setTimeout(resolve, 5));
}
const isWhole = ({ document }) => document.getMap('words').size === CLIENTS * WORDS;
while (!clients.every(isWhole)) await new Promise((resolve) => setTimeout(resolve, 20));
const contents = clients.map(({ document }) => Object.entries(document.getMap('words').toJSON()).sort());
console.log(JSON.stringify(contents));
for (const { provider, websocketProvider } of clients) {
  provider.destroy();
  websocketProvider.destroy();
}
await Promise.all(servers.map((server) => server.destroy()));
process.exit(0);
