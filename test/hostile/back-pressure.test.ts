import { describe, expect, it } from 'vitest';
import { findServerBinary } from '../../tools/server-binary.js';
import { pressServer, readSlowly } from '../helpers/hostile/back-pressure.js';
import { ioredis6 as host } from '../helpers/hosts.js';

const COMMANDS = 100_000;
const MAX_IN_FLIGHT = 2_000;

describe('a server that does not answer, then does', () => {
  it.each(['SIGSTOP', 'CLIENT PAUSE'] as const)(
    `${COMMANDS} commands under %s: never more than maxInFlight on the wire, all answered in order`,
    { timeout: 90_000 },
    async (pauseWith) => {
      const { bytesPerCommand, ...found } = await pressServer({
        host,
        commands: COMMANDS,
        maxInFlight: MAX_IN_FLIGHT,
        pauseWith,
      });
      expect(found).toEqual({
        mostOnTheWire: MAX_IN_FLIGHT,
        onTheWireWhenIssued: MAX_IN_FLIGHT,
        answered: COMMANDS,
        outOfOrder: 0,
      });
      console.log(`${pauseWith}: ${Math.round(bytesPerCommand)} bytes a waiting command`);
    },
  );

  it('a plain client holds more memory for the same commands, and puts all of them on the wire', {
    timeout: 90_000,
  }, async () => {
    const common = { host, commands: COMMANDS, pauseWith: 'SIGSTOP' } as const;
    const plain = await pressServer(common);
    const coalesced = await pressServer({ ...common, maxInFlight: MAX_IN_FLIGHT });
    expect(plain).toMatchObject({ answered: COMMANDS, outOfOrder: 0 });
    expect(plain.mostOnTheWire).toBeGreaterThan(10 * MAX_IN_FLIGHT);
    expect(coalesced.bytesPerCommand).toBeLessThan(plain.bytesPerCommand);
  });
});

describe('a client that does not read, then does', () => {
  const REPLIES = 600;
  const SIZE = 200_000;
  const FEW = 10;
  /** Replies on the wire, and as many again for what the server allocates beside them. */
  const BOUND = 2 * FEW * SIZE + 4_000_000;

  it.each(['paused stream', 'blocked event loop'] as const)(
    'huge replies, %s: the server holds no more than maxInFlight of them, all arrive in order',
    { timeout: 90_000 },
    async (slowBy) => {
      const common = { host, replies: REPLIES, size: SIZE, slowBy };
      const { serverGrowth, ...found } = await readSlowly({ ...common, maxInFlight: FEW });
      expect(found).toEqual({ answered: REPLIES, wrong: 0 });
      expect(serverGrowth).toBeLessThan(BOUND);
    },
  );

  it('with a plain client the server holds all replies', { timeout: 90_000 }, async ({ skip }) => {
    const { path } = await findServerBinary();
    skip(path.includes('valkey'), 'Valkey sends large values without copying them first');
    const found = await readSlowly({ host, replies: REPLIES, size: SIZE, slowBy: 'paused stream' });
    expect(found).toMatchObject({ answered: REPLIES, wrong: 0 });
    expect(found.serverGrowth).toBeGreaterThan(BOUND);
  });
});
