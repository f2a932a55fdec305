import { CODES, describe, describeType, withCode } from '../errors.js';
import type { Coalesced } from '../handle.js';
import type { Reading } from './metrics.js';
import { wrongOption } from './wrong-option.js';

export type Labels = Readonly<Record<string, string | number>>;

/** As Prometheus and prom-client have it. */
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
/** Label names that clients cannot have. */
const OWN_LABELS: readonly string[] = ['path', 'reason', 'le'];

/** One client on a registry. */
export class CollectedClient {
  /** In alphabetical order. */
  readonly labelNames: readonly string[];

  constructor(
    readonly client: Coalesced,
    readonly labels: Labels,
  ) {
    if (!isCoalesced(client)) {
      throw withCode(
        new TypeError(
          `ioredis-coalesce: collectMetrics() expects a coalesced client, such as coalesce(new Redis()), got ${describeType(client)}`,
        ),
        CODES.CLIENT,
      );
    }
    checkLabels(labels);
    this.labelNames = Object.keys(labels).sort();
  }

  read(): Reading {
    // Another one after detach() and coalesce(); its counters begin at zero.
    const { coalescer } = this.client;
    return { stats: coalescer.stats(), maxInFlight: coalescer.options.maxInFlight, attached: coalescer.enabled };
  }

  /** `{client="cache"}` */
  describeLabels(): string {
    const pairs = this.labelNames.map((name) => `${name}=${JSON.stringify(String(this.labels[name]))}`);
    return `{${pairs.join(', ')}}`;
  }
}

function isCoalesced(client: Coalesced): boolean {
  return typeof (client as Partial<Coalesced> | null | undefined)?.coalescer?.stats === 'function';
}

function checkLabels(labels: Labels): void {
  if (typeof labels !== 'object' || labels === null || Array.isArray(labels)) {
    throw wrongOption(`options.labels must be an object, got ${describe(labels)}`);
  }
  for (const [name, value] of Object.entries(labels)) {
    if (OWN_LABELS.includes(name)) {
      throw wrongOption(`options.labels.${name} is a label that these metrics already have; choose another name`);
    }
    if (!LABEL_NAME.test(name)) {
      throw wrongOption(
        `options.labels: a name must be letters, digits and _, and not begin with a digit, got ${describe(name)}`,
      );
    }
    if (typeof value !== 'string' && !Number.isFinite(value)) {
      throw wrongOption(`options.labels.${name} must be a string or a finite number, got ${describe(value)}`);
    }
  }
}
