import { describe, expect, it } from 'vitest';
import { pressServer, readSlowly } from '../helpers/hostile/back-pressure.js';
import { ioredis6 as host } from '../helpers/hosts.js';
import { soakScale } from './duration.js';

const COMMANDS = Math.ceil(1_000_000 * soakScale());
const MAX_IN_FLIGHT = 10_000;

describe('back-pressure', () => {
  it.each(['SIGSTOP', 'CLIENT PAUSE'] as const)(`${COMMANDS} commands under %s`, async (pauseWith) => {
    const { bytesPerCommand, ...found } = await pressServer({
      host,
      commands: COMMANDS,
      maxInFlight: MAX_IN_FLIGHT,
      pauseWith,
      progress: (answered) => console.log(`${pauseWith}: ${answered} answered`),
    });
    console.log(`${pauseWith}: ${bytesPerCommand.toFixed(0)} bytes a waiting command, ${JSON.stringify(found)}`);
    const most = Math.min(COMMANDS, MAX_IN_FLIGHT);
    expect(found).toEqual({ mostOnTheWire: most, onTheWireWhenIssued: most, answered: COMMANDS, outOfOrder: 0 });
    // With its promise and the caller's own function; the text of a command is shared.
    expect(bytesPerCommand).toBeLessThan(1_500);
  });

  it.each(['paused stream', 'blocked event loop'] as const)('huge replies, %s', async (slowBy) => {
    const replies = Math.ceil(3_000 * soakScale());
    const size = 1_000_000;
    const { serverGrowth, ...found } = await readSlowly({ host, replies, size, maxInFlight: 10, slowBy });
    console.log(`${slowBy}: ${replies} MB of replies, the server grew by ${(serverGrowth / 1e6).toFixed(1)} MB`);
    expect(found).toEqual({ answered: replies, wrong: 0 });
    expect(serverGrowth).toBeLessThan(2 * 10 * size + 4_000_000);
  });
});
