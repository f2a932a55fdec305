import { VARIANTS } from './subject.js';

/** The limits of a load run: the page's sliders have the same. */
const BOUNDS = {
  connections: { type: 'integer', minimum: 1, maximum: 200 },
  commands: { type: 'integer', minimum: 1, maximum: 64 },
  seconds: { type: 'integer', minimum: 1, maximum: 10 },
} as const;

export const RUN = {
  schema: {
    body: {
      type: 'object',
      required: ['connections', 'commands', 'seconds'],
      additionalProperties: false,
      properties: BOUNDS,
    },
  },
} as const;

export const LOAD = {
  // Thousands of lines a second would skew the figures.
  logLevel: 'error',
  schema: {
    params: {
      type: 'object',
      properties: { variant: { type: 'string', enum: VARIANTS }, id: { type: 'integer', minimum: 1 } },
    },
    querystring: {
      type: 'object',
      required: ['commands'],
      properties: { commands: BOUNDS.commands },
    },
    response: {
      200: {
        type: 'object',
        properties: { values: { type: 'array', items: { type: 'string', nullable: true } } },
      },
    },
  },
} as const;
