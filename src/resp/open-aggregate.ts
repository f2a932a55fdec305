import type { FieldNames } from './field-names.js';
import { objectOf } from './map-object.js';

/** An array, a set or a map of which some elements have not been decoded. */
export class OpenAggregate {
  /** Number of elements that have been decoded. */
  filled = 0;
  readonly values: unknown[];

  /** @param room - the most elements that the chunk can hold: no memory is reserved for more. */
  constructor(
    readonly length: number,
    room: number,
    /** Whether it becomes an object: each even element is a key. */
    readonly keyed: boolean,
    /** Of the fields of a hash, whose elements are names and values in turn; undefined for others. */
    readonly names: FieldNames | undefined,
  ) {
    this.values = new Array<unknown>(Math.min(length, room));
  }

  add(value: unknown): void {
    this.values[this.filled] = value;
    this.filled += 1;
  }

  get lacksOne(): boolean {
    return this.filled === this.length - 1;
  }

  /** What it becomes when all elements are there. */
  get whole(): unknown {
    return this.keyed ? objectOf(this.values) : this.values;
  }
}
