import { once } from 'node:events';
import { createServer } from 'node:net';
import { HOST } from './server-process.js';

/**
 * Below the ports that systems hand out by themselves (Linux from 32768 on): a client that tries to reach a server that
 * has ended must not reach another program that was given its port.
 */
const FIRST = 10_000;
const LAST = 32_767;
const ATTEMPTS = 100;

/** A port of loopback that nobody listens on: `wanted` if it is free, else any. */
export async function freePort(wanted = 0): Promise<number> {
  if (wanted !== 0 && (await isFree(wanted))) return wanted;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST + 1));
    if (await isFree(port)) return port;
  }
  throw new Error(`expected a free port from ${FIRST} to ${LAST}, found none in ${ATTEMPTS} attempts`);
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer().listen(port, HOST);
  try {
    await once(probe, 'listening');
  } catch {
    return false;
  }
  probe.close();
  await once(probe, 'close');
  return true;
}
