import { once } from 'node:events';
import { createServer } from 'node:net';
import { HOST } from './server-process.js';

/** A port of loopback that nobody listens on: `wanted` if it is free, else any. */
export async function freePort(wanted = 0): Promise<number> {
  const probe = createServer().listen(wanted, HOST);
  try {
    await once(probe, 'listening');
  } catch (error) {
    if (wanted !== 0) return freePort();
    throw error;
  }
  const address = probe.address();
  if (address === null || typeof address === 'string') {
    throw new Error(`expected a TCP address from the port probe, got ${String(address)}`);
  }
  probe.close();
  await once(probe, 'close');
  return address.port;
}
