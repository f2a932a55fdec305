import type { FastifyInstance, FastifyRequest } from 'fastify';
import { RequestError } from '../errors.js';

const LOOPBACK = /^(::ffff:)?127\.|^::1$/;

/** A load run may only be started from this machine. */
export function assertLocal(request: FastifyRequest): void {
  const { remoteAddress } = request.socket;
  if (remoteAddress === undefined || !LOOPBACK.test(remoteAddress)) {
    throw new RequestError(403, `expected a request from this machine, got one from ${remoteAddress}`);
  }
}

/** The service's origin on this machine, for the load. */
export function originOf(app: FastifyInstance): string {
  const address = app.server.address();
  if (address === null || typeof address === 'string') {
    throw new RequestError(503, 'expected the service to listen on a port, it does not');
  }
  const { address: host, port } = address;
  if (host === '0.0.0.0' || host === '::') {
    return `http://127.0.0.1:${port}`;
  }
  if (!LOOPBACK.test(host)) {
    throw new RequestError(503, `expected the service to listen on loopback, it listens on ${host} only`);
  }
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
