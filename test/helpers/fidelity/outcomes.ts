import { setTimeout as sleep } from 'node:timers/promises';
import { canonical, difference } from './canonical.js';

const OPEN = 'still open';

export type Normalise = (value: unknown) => unknown;

/** Some are long, and only a mismatch needs one. */
type Label = string | (() => string);

type Slot = { readonly label: Label; outcome: string };

const textOf = (label: Label): string => (typeof label === 'function' ? label() : label);

/** Ruins a value that was noted: if another caller shares it, or its memory, that caller has a wrong value. */
function spoil(value: unknown): void {
  if (Buffer.isBuffer(value)) {
    value.fill('!');
  } else if (Array.isArray(value)) {
    value.forEach(spoil);
    value.length = 0;
  } else if (value instanceof Error) {
    value.message = 'spoiled';
  } else if (typeof value === 'object' && value !== null) {
    for (const name of Object.keys(value)) {
      spoil(Reflect.get(value, name));
      Reflect.deleteProperty(value, name);
    }
  }
}

/** What became of each call of a program, as text, in the order in which the calls were made. */
export class Outcomes {
  readonly #slots: Slot[] = [];
  readonly #pending: Promise<void>[] = [];

  /** Makes a call and notes what it returns, throws, resolves or rejects with. Never rejects. */
  track(label: Label, issue: () => unknown, normalise?: Normalise): Promise<void> {
    const slot = this.slot(label);
    let returned: unknown;
    try {
      returned = issue();
    } catch (error) {
      slot.outcome = `threw ${canonical(error)}`;
      return Promise.resolve();
    }
    if (!(returned instanceof Promise)) {
      slot.outcome = `returned ${canonical(returned)}`;
      return Promise.resolve();
    }
    const settled = returned.then(
      (value: unknown) => {
        slot.outcome = `resolved ${canonical(normalise ? normalise(value) : value)}`;
        spoil(value);
      },
      (error: unknown) => {
        slot.outcome = `rejected ${canonical(error)}`;
        spoil(error);
      },
    );
    this.#pending.push(settled);
    return settled;
  }

  /** A node-style callback whose arguments, and how often it is called, are noted like an outcome. */
  callback(label: Label, normalise: Normalise = (value) => value): (...args: unknown[]) => void {
    const slot = this.slot(label);
    let done: () => void = () => {};
    this.#pending.push(
      new Promise((resolve) => {
        done = resolve;
      }),
    );
    return (...args) => {
      const called = `called ${canonical(args.map(normalise))}`;
      slot.outcome = slot.outcome === OPEN ? called : `${slot.outcome} and again ${called}`;
      done();
    };
  }

  /** Resolves when every call has settled, or after `deadline` ms with those that have not left as "still open". */
  async settled(deadline = 5_000): Promise<void> {
    const cancel = new AbortController();
    const late = sleep(deadline, undefined, { signal: cancel.signal }).catch(() => {});
    await Promise.race([Promise.all(this.#pending), late]);
    cancel.abort();
  }

  /**
   * One line for each call whose outcome is not the one that a plain client gave.
   *
   * @param isTolerated - for an outcome that is different, and may be: the plain client's, and this one's.
   */
  mismatches(plain: Outcomes, isTolerated: (theirs: string, mine: string) => boolean = () => false): string[] {
    const length = Math.max(this.#slots.length, plain.#slots.length);
    const found: string[] = [];
    for (let index = 0; index < length; index += 1) {
      const mine = this.#slots[index];
      const theirs = plain.#slots[index];
      const differs = difference(theirs?.outcome, mine?.outcome);
      if (differs !== undefined && !isTolerated(theirs?.outcome ?? '', mine?.outcome ?? '')) {
        const { label } = (mine ?? theirs) as Slot;
        found.push(`#${index} ${textOf(label)}\n  ${differs}`);
      }
    }
    return found;
  }

  /** The calls that have not settled. */
  get open(): string[] {
    return this.#slots.flatMap(({ label, outcome }, index) => (outcome === OPEN ? [`#${index} ${textOf(label)}`] : []));
  }

  private slot(label: Label): Slot {
    const slot = { label, outcome: OPEN };
    this.#slots.push(slot);
    return slot;
  }
}
