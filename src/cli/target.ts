/** The Redis that is measured. */
export interface Target {
  readonly url: string;
  readonly cluster: boolean;
  /** `host:port`, for messages: never the user or the password. */
  readonly name: string;
  /** How the server's certificate is checked; undefined for Node's own way. */
  readonly tls: TlsCheck | undefined;
}

/** Options of a TLS connection. */
export type TlsCheck = { readonly ca: string } | { readonly rejectUnauthorized: false };

/** @throws {Error} whose message does not repeat the URL, since it may hold a password. */
export function targetOf(url: string, cluster: boolean, tls?: TlsCheck): Target {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^rediss?:$/.test(parsed.protocol) || parsed.hostname === '') {
    throw new Error('the URL of Redis must look like redis://host:port or rediss://host:port');
  }
  if (tls !== undefined && parsed.protocol !== 'rediss:') {
    throw new Error('--ca and --insecure need TLS: a URL that begins with rediss://');
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
