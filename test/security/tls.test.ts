import type { TlsOptions } from 'node:tls';
import { beforeAll, describe, expect, it } from 'vitest';
import { createAs, type Kind } from '../helpers/beside.js';
import { cold } from '../helpers/cold.js';
import { HOSTS, type Host, ready } from '../helpers/hosts.js';
import { describeError, Recorder } from '../helpers/lifecycle/transcript.js';
import { redisUrl } from '../helpers/redis.js';
import { type Certificate, certificate, startTlsFront } from '../helpers/tls-front.js';

let right: Certificate;
let otherAuthority: Certificate;
let otherName: Certificate;
let expired: Certificate;

beforeAll(async () => {
  right = await certificate('localhost');
  otherAuthority = await certificate('localhost');
  otherName = await certificate('elsewhere.example');
  expired = await certificate('localhost', { from: new Date('2020-01-01'), to: new Date('2020-02-01') });
});

/** What a client that trusts only `trusted` makes of a server that shows `shown`. */
type Meeting = { readonly server: () => TlsOptions; readonly client: () => Record<string, unknown> };

const REFUSED: Readonly<Record<string, Meeting>> = {
  'a certificate that nobody has signed': { server: () => right, client: () => ({}) },
  'a certificate of another authority': { server: () => otherAuthority, client: () => ({ ca: right.cert }) },
  'a certificate for another name': { server: () => otherName, client: () => ({ ca: otherName.cert }) },
  'a certificate that has expired': { server: () => expired, client: () => ({ ca: expired.cert }) },
  'a TLS version that is too old': {
    server: () => ({ ...right, maxVersion: 'TLSv1.2' }),
    client: () => ({ ca: right.cert, minVersion: 'TLSv1.3' }),
  },
  'a server that wants a certificate of ours': {
    server: () => ({ ...right, ca: right.cert, requestCert: true, rejectUnauthorized: true, maxVersion: 'TLSv1.2' }),
    client: () => ({ ca: right.cert }),
  },
};

/** Connects, issues commands, and returns the outcome. */
async function meet(host: Host, kind: Kind, { server, client: tls }: Meeting) {
  const front = await startTlsFront(redisUrl(), server());
  const options = {
    tls: { servername: 'localhost', ...tls() },
    retryStrategy: (times: number) => (times < 3 ? 1 : null),
  };
  const url = `redis://127.0.0.1:${front.port}`;
  const client = createAs(kind, host, url, options);
  const recorder = new Recorder();
  const errors: string[] = [];
  client.on('error', (error) => errors.push(describeError(error)));
  for (const [name, reply] of Object.entries({
    set: client.set('tls', 'must not be sent'),
    call: cold(client, 'SET', 'tls', 'must not be sent'),
    pipeline: client.pipeline().set('tls', 'must not be sent').exec(),
  })) {
    void recorder.track(name, reply as Promise<unknown>);
  }
  await recorder.settle(0);
  return { errors, transcript: recorder.transcript(), status: client.status, reached: front.reached() };
}

describe.each(HOSTS)('$name: TLS', (host) => {
  it.each(Object.keys(REFUSED))('refuses %s as a plain client does, and sends nothing', async (name) => {
    const meeting = REFUSED[name] as Meeting;
    const plain = await meet(host, 'plain', meeting);
    expect(await meet(host, 'coalesced', meeting)).toEqual(plain);
    expect(plain.errors).toHaveLength(3);
    expect(plain.reached).toBe(0);
    expect(plain.status).toBe('end');
  });

  it('works, fast and over a reconnect, with the right certificate', async () => {
    const front = await startTlsFront(redisUrl(), right);
    const tls = { servername: 'localhost', ca: right.cert };
    const client = host.createCoalesced(`redis://127.0.0.1:${front.port}`, { tls, retryStrategy: () => 5 });
    await ready(client);
    const texts = ['a', 'é', 'x'.repeat(100_000), '\r\n', ''];
    const echo = (text: string, index: number) => (index % 2 === 0 ? client.echo(text) : cold(client, 'ECHO', text));
    expect(await Promise.all(texts.map(echo))).toEqual(texts);
    client.stream.destroy();
    expect(await Promise.all(texts.map(echo))).toEqual(texts);
    await ready(client);
    expect(await Promise.all(texts.map(echo))).toEqual(texts);
    expect(client.coalescer.stats().fastCommands).toBeGreaterThan(5);
    expect(front.reached()).toBeGreaterThan(0);
  });

  it('uses TLS without a check of the certificate if the user says so, as a plain client does', async () => {
    const front = await startTlsFront(redisUrl(), otherName);
    const client = host.createCoalesced(`redis://127.0.0.1:${front.port}`, { tls: { rejectUnauthorized: false } });
    await ready(client);
    expect(await Promise.all([client.echo('fast'), cold(client, 'ECHO', 'cold')])).toEqual(['fast', 'cold']);
  });
});
