import { STATUS_CODES } from 'node:http';
import type { FastifyError, FastifyInstance } from 'fastify';

/** An error caused by the caller, with the response status. */
export class RequestError extends Error {
  readonly statusCode: number;

  constructor(statusCode: number, message: string) {
    super(message);
    this.name = 'RequestError';
    this.statusCode = statusCode;
  }
}

/** The answer to an error, for the routes' schemas. */
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
    // Internal errors are for the log, not for the caller.
    const message = statusCode < 500 ? error.message : 'the shop cannot answer this right now';
    return reply.code(statusCode).send({ statusCode, error: STATUS_CODES[statusCode] ?? 'Error', message });
  });
}

/** If Redis is down, this service is not at fault: 503 makes a load balancer try elsewhere. */
function statusOf(error: FastifyError, redisStatus: string): number {
  if (error.statusCode !== undefined) {
    return error.statusCode;
  }
  return redisStatus === 'ready' ? 500 : 503;
}
