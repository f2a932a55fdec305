import { FAILURE_SCHEMA } from '../errors.js';

const text = { type: 'string' } as const;
const failures = { '4xx': FAILURE_SCHEMA, '5xx': FAILURE_SCHEMA } as const;
const productId = {
  type: 'object',
  required: ['id'],
  properties: { id: { type: 'string', pattern: '^[0-9]{1,9}$' } },
} as const;
const session = { type: 'object', properties: { customer: text } } as const;

export const BEGIN_SESSION = {
  schema: {
    body: {
      type: 'object',
      required: ['customer'],
      additionalProperties: false,
      properties: { customer: { type: 'string', minLength: 1, maxLength: 100 } },
    },
    response: { 201: session, ...failures },
  },
} as const;

export const SESSION = { schema: { response: { 200: session, ...failures } } } as const;

export const NO_CONTENT = { schema: { response: failures } } as const;

export const CART = {
  schema: {
    response: {
      200: {
        type: 'object',
        properties: {
          lines: {
            type: 'array',
            items: {
              type: 'object',
              properties: {
                productId: text,
                name: text,
                price: { type: 'string', nullable: true },
                quantity: { type: 'integer' },
              },
            },
          },
        },
      },
      ...failures,
    },
  },
} as const;

export const PUT_IN_CART = {
  schema: {
    params: productId,
    body: {
      type: 'object',
      required: ['quantity'],
      additionalProperties: false,
      properties: { quantity: { type: 'integer', minimum: 1, maximum: 99 } },
    },
    response: failures,
  },
} as const;

export const TAKE_FROM_CART = { schema: { params: productId, response: failures } } as const;

export const CHECK_OUT = {
  schema: { response: { 200: { type: 'object', properties: { ordered: { type: 'integer' } } }, ...failures } },
} as const;

export const LEADERBOARD = {
  schema: {
    querystring: {
      type: 'object',
      properties: { top: { type: 'integer', minimum: 1, maximum: 100, default: 10 } },
    },
    response: {
      200: {
        type: 'object',
        properties: {
          bestSellers: {
            type: 'array',
            items: {
              type: 'object',
              properties: { rank: { type: 'integer' }, productId: text, name: text, sold: { type: 'number' } },
            },
          },
        },
      },
      ...failures,
    },
  },
} as const;
