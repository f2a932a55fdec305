import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generate } from 'selfsigned';
import { freePort } from '../../../tools/free-port.js';
import { type RedisServer, startRedis } from '../../../tools/redis-server.js';

export type Certificate = { readonly key: string; readonly cert: string };

/** A server that can be reached in every way a server can, as any of its users. */
export interface SecuredServer {
  readonly server: RedisServer;
  /** Undefined where the server is built without TLS. */
  readonly tlsPort: number | undefined;
  readonly socket: string;
  /** What a client needs: the authority that it trusts, and a certificate that the server trusts. */
  readonly authority: string;
  readonly client: Certificate;
  readonly user: { readonly username: string; readonly password: string };
  stop(): Promise<void>;
}

/** A Redis server with TLS that asks clients for certificates, a unix socket, and a user who may not do everything. */
export async function startSecuredServer(): Promise<SecuredServer> {
  const folder = mkdtempSync(join(tmpdir(), 'ioredis-coalesce-tls-'));
  const authority = await certificate('authority of the test');
  const client = await certificate('client', authority);
  const own = await certificate('localhost', authority);
  const file = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const user = { username: 'shop', password: 'a-secret-of-16!' };
  const tlsPort = await freePort();
  const socket = join(folder, 'redis.sock');
  const tls = ['--tls-port', String(tlsPort), '--tls-auth-clients', 'yes'];
  tls.push('--tls-ca-cert-file', file('authority.crt', authority.cert));
  tls.push('--tls-cert-file', file('server.crt', own.cert), '--tls-key-file', file('server.key', own.key));
  const args = ['--unixsocket', socket, '--unixsocketperm', '700', '--aclfile', file('users.acl', aclOf(user))];
  let withTls = true;
  const server = await startRedis({ args: [...args, ...tls] }).catch((error: Error) => {
    if (!/bad directive|without tls|TLS support/i.test(error.message)) throw error;
    console.warn('!! SKIPPED: TLS: this server is built without it');
    withTls = false;
    return startRedis({ args });
  });
  return {
    server,
    tlsPort: withTls ? tlsPort : undefined,
    socket,
    authority: authority.cert,
    client,
    user,
    async stop() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * A client that names no user is the default one; the other user may run nothing dangerous, and only on its own keys.
 */
function aclOf({ username, password }: SecuredServer['user']): string {
  return `user default on nopass ~* &* +@all\nuser ${username} on >${password} ~shop:* &* +@all -@dangerous +info\n`;
}

async function certificate(name: string, authority?: Certificate): Promise<Certificate> {
  const made = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    algorithm: 'sha256',
    ...(authority && { ca: authority }),
    extensions: [
      { name: 'basicConstraints', cA: authority === undefined, critical: true },
      { name: 'subjectAltName', altNames: [{ type: 2, value: name }] },
    ],
  });
  return { key: made.private, cert: made.cert };
}
