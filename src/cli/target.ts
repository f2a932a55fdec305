/** The Redis that is measured. */
export interface Target {
  /** As the client takes it: a URL, or the path of a unix socket. */
  readonly url: string;
  readonly cluster: boolean;
  /** `host:port` or the path, for messages: never the user or the password. */
  readonly name: string;
  /** How the server's certificate is checked; undefined for Node's own way. */
  readonly tls: TlsCheck | undefined;
}

/** Options of a TLS connection. */
export type TlsCheck = { readonly ca: string } | { readonly rejectUnauthorized: false };

const HOST_AND_PORT = /^(?:\[[\da-f:.]+\]|[\w.-]+):\d+(?:\/\d+)?$/i;

/** @throws {Error} whose message does not repeat the address, since it may hold a password. */
export function targetOf(address: string, cluster: boolean, tls?: TlsCheck): Target {
  const target = socketTarget(address, cluster, tls) ?? urlTarget(address, cluster, tls);
  if (tls !== undefined && !speaksTls(target)) {
    throw new Error('--ca and --insecure need TLS: a URL that begins with rediss://');
  }
  return target;
}

export function speaksTls({ url }: Target): boolean {
  return url.startsWith('rediss:');
}

function socketTarget(address: string, cluster: boolean, tls: TlsCheck | undefined): Target | undefined {
  const path = address.replace(/^unix:(?:\/\/)?(?=\/)/, '');
  if (!path.startsWith('/')) return undefined;
  if (cluster) throw new Error('--cluster needs a URL with a host, not a unix socket');
  return { url: path, cluster, tls, name: path };
}

function urlTarget(address: string, cluster: boolean, tls: TlsCheck | undefined): Target {
  const url = HOST_AND_PORT.test(address) ? `redis://${address}` : address;
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^rediss?:$/.test(parsed.protocol) || parsed.hostname === '') {
    throw new Error(
      'the URL of Redis must look like redis://host:port, rediss://host:port, host:port or /path/of/a.sock',
    );
  }
  return { url, cluster, tls, name: `${parsed.hostname}:${parsed.port || '6379'}` };
}

/** The options of each node of a Cluster, except its address. */
export function clusterNodeOptions({ url, tls }: Target): { username?: string; password?: string; tls?: object } {
  const { username, password, protocol } = new URL(url);
  return {
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss:' && { tls: tls ?? {} }),
  };
}
