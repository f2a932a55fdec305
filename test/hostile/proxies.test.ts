/** What tests rely on when they spoil a connection. */
import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { sleep, until } from '../helpers/hosts.js';
import { type FaultyProxy, startProxy } from '../helpers/proxy.js';
import { redisUrl } from '../helpers/redis.js';
import { bulk } from '../helpers/scripted-server.js';

/** A connection through a proxy, and what came of it. */
async function dial(proxy: FaultyProxy) {
  const socket = connect(Number(new URL(proxy.url).port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  const packets: string[] = [];
  let ended = '';
  socket.on('data', (packet) => packets.push(packet.toString()));
  socket.on('end', () => {
    ended = 'end';
  });
  socket.on('error', ({ code }: NodeJS.ErrnoException) => {
    ended = String(code);
  });
  await new Promise((resolve) => socket.once('connect', resolve));
  return { socket, packets, text: () => packets.join(''), ended: () => ended };
}

const TEXTS = ['one', 'two and more', 'three'];
const REPLIES = TEXTS.map(bulk).join('');
const echo = (text: string) => `ECHO "${text}"\r\n`;

it('replies that are cut come in order, in separate packets', async () => {
  const proxy = await startProxy(redisUrl());
  proxy.cutRepliesInto(2);
  const { socket, text, packets } = await dial(proxy);
  for (const one of TEXTS) {
    socket.write(echo(one));
    // Later ones come while the first is being cut.
    await new Promise(setImmediate);
  }
  await until(() => text().length >= REPLIES.length, 'all replies');
  expect(text()).toBe(REPLIES);
  // A busy kernel may put some together.
  expect(packets.length).toBeGreaterThan(REPLIES.length / 4);
});

it.each([1, 5, REPLIES.length])('a reset after %i bytes of replies comes when they have been read', async (bytes) => {
  const proxy = await startProxy(redisUrl());
  proxy.resetAfterReplyBytes(bytes);
  const { socket, text, ended } = await dial(proxy);
  socket.write(TEXTS.map(echo).join(''));
  await until(() => ended() !== '', 'the reset');
  expect([text(), ended(), proxy.strikes]).toEqual([REPLIES.slice(0, bytes), 'ECONNRESET', 1]);
  const next = await dial(proxy);
  next.socket.write(echo('next'));
  await until(() => next.text() === bulk('next'), 'a connection without the fault');
});

it('stuck replies come first, in order, and the end behind them', async () => {
  const proxy = await startProxy(redisUrl());
  const { socket, text, ended } = await dial(proxy);
  proxy.stall();
  for (const one of TEXTS) {
    socket.write(echo(one));
    await sleep(10);
  }
  socket.write('QUIT\r\n');
  await sleep(20);
  expect([text(), ended()]).toEqual(['', '']);
  proxy.resume();
  await until(() => ended() !== '', 'the end');
  expect([text(), ended()]).toEqual([`${REPLIES}+OK\r\n`, 'end']);
});

it('a half-open connection is silent, and its requests are lost', async () => {
  const proxy = await startProxy(redisUrl());
  const { socket, text, ended } = await dial(proxy);
  proxy.halfOpen();
  socket.write(echo('lost'));
  await until(() => proxy.received().includes('lost'), 'the request at the proxy');
  await sleep(20);
  expect([text(), ended(), socket.readyState]).toEqual(['', '', 'open']);
});

it('requests that are lost do not stop the replies to those before them', async () => {
  const proxy = await startProxy(redisUrl());
  const { socket, text, ended } = await dial(proxy);
  proxy.stall();
  socket.write(echo('answered'));
  await until(() => proxy.received().includes('answered'), 'the request at the proxy');
  await sleep(10);
  const lost = proxy.loseRequests('lost');
  proxy.resume();
  await until(() => text() !== '', 'the reply');
  socket.write(echo('lost'));
  await lost;
  await until(() => ended() !== '', 'the reset');
  expect([text(), ended()]).toEqual([bulk('answered'), 'ECONNRESET']);
});
