import { FAILURE_SCHEMA } from '../errors.js';
import { DETAILS } from '../product.js';

const nullableText = { type: 'string', nullable: true } as const;

export interface ById {
  Params: { id: string };
}

/** For routes that answer with a product page. */
export const PRODUCT_ROUTE = {
  schema: {
    params: {
      type: 'object',
      required: ['id'],
      properties: { id: { type: 'string', pattern: '^[0-9]{1,9}$' } },
    },
    response: {
      200: {
        type: 'object',
        required: ['id', 'name'],
        properties: {
          id: { type: 'string' },
          ...Object.fromEntries(DETAILS.map((detail) => [detail, nullableText])),
          name: { type: 'string' },
        },
      },
      '4xx': FAILURE_SCHEMA,
      '5xx': FAILURE_SCHEMA,
    },
  },
} as const;
