import { STATUS_CODES } from 'node:http';
import type { FastifyError, FastifyInstance } from 'fastify';

/** An error that is the caller's, with the status to answer with. */
export class RequestError extends Error {
  readonly statusCode: number;

  constructor(statusCode: number, message: string) {
    super(message);
    this.name = 'RequestError';
    this.statusCode = statusCode;
  }
}

/** Of every error's answer, for the routes' schemas. */
export const FAILURE_SCHEMA = {
  type: 'object',
  properties: { statusCode: { type: 'integer' }, error: { type: 'string' }, message: { type: 'string' } },
} as const;

export function handleErrors(app: FastifyInstance): void {
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    const statusCode = statusOf(error, app.redis.status);
    if (statusCode >= 500) {
      request.log.error({ err: error }, 'request failed');
    }
    // What went wrong inside is for the log, not for the caller.
    const message = statusCode < 500 ? error.message : 'the shop cannot answer this right now';
    return reply.code(statusCode).send({ statusCode, error: STATUS_CODES[statusCode] ?? 'Error', message });
  });
}

/** Redis being away is not a fault of this service: say 503, so that a load balancer tries elsewhere. */
function statusOf(error: FastifyError, redisStatus: string): number {
  if (error.statusCode !== undefined) {
    return error.statusCode;
  }
  return redisStatus === 'ready' ? 500 : 503;
}
