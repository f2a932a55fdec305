import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generate } from 'selfsigned';
import { freePort } from '../tools/free-port.js';
import { BenchServer } from './server.js';

/** A server that speaks TLS too, with a certificate made for this run; undefined where the server was built without. */
export async function startTlsServer(): Promise<BenchServer | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'ioredis-coalesce-tls-'));
  try {
    const { private: key, cert } = await generate([{ name: 'commonName', value: 'localhost' }], {
      keyType: 'ec',
      algorithm: 'sha256',
      extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: 'localhost' }] }],
    });
    await writeFile(join(folder, 'cert.pem'), cert);
    await writeFile(join(folder, 'key.pem'), key, { mode: 0o600 });
    const port = await freePort();
    const args = ['--tls-port', String(port), '--tls-auth-clients', 'no'];
    args.push('--tls-cert-file', join(folder, 'cert.pem'), '--tls-key-file', join(folder, 'key.pem'));
    return await BenchServer.start(args, { ca: cert }, `rediss://localhost:${port}`);
  } catch (error) {
    // What a server without TLS says of the option.
    if (/tls-port|Bad directive|--enable-tls|BUILD_TLS/i.test(String(error))) return undefined;
    throw error;
  } finally {
    // The server has read them.
    await rm(folder, { recursive: true, force: true });
  }
}
