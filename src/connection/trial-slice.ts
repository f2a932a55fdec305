/**
 * After a change of sides, callers whose commands left together take some round trips to drift apart, and the other way
 * round: the first turns are not measured. Turns of many milliseconds settle by time.
 */
const SETTLING_TURNS = 6;
const SETTLING_TIME = 10;
/** A slice is measured for this many milliseconds and turns, */
const LEAST_TIME = 3;
const LEAST_TURNS = 20;
/** but turns of a millisecond and more tell enough in this time, and this many of them. */
const LONG_TIME = 15;
const LONG_TURNS = 4;
/** That many of the longest turns are left out, but no more than a quarter of all. */
const LEFT_OUT = 3;

/**
 * Some consecutive turns of the event loop, and how much work was sent per time in them.
 *
 * A collection of garbage, or another process that gets the processor, takes as long as tens of turns, and hits both
 * sides of a trial by chance. The longest turns are left out with their work, so that a few slices tell what took
 * hundreds of them: docs/performance.md has the figures.
 */
export class TrialSlice {
  #settling = SETTLING_TURNS;
  #settlingTime = SETTLING_TIME;
  #turns = 0;
  /** Milliseconds of the measured turns, and their work. */
  #time = 0;
  #work = 0;
  /** Milliseconds of the longest of them, in descending order, and the work of each. */
  readonly #longest = new Float64Array(LEFT_OUT);
  readonly #theirWork = new Float64Array(LEFT_OUT);

  begin(): void {
    this.#settling = SETTLING_TURNS;
    this.#settlingTime = SETTLING_TIME;
    this.#turns = 0;
    this.#time = 0;
    this.#work = 0;
    this.#longest.fill(0);
    this.#theirWork.fill(0);
  }

  /**
   * Adds a turn.
   *
   * @param time - milliseconds that it took.
   * @param work - that was sent in it.
   * @returns whether the slice has ended.
   */
  add(time: number, work: number): boolean {
    if (this.#settling > 0 && this.#settlingTime > 0) {
      this.#settling -= 1;
      this.#settlingTime -= time;
      return false;
    }
    this.#turns += 1;
    this.#time += time;
    this.#work += work;
    this.#rank(time, work);
    if (this.#turns >= LEAST_TURNS) return this.#time >= LEAST_TIME;
    return this.#turns >= LONG_TURNS && this.#time >= LONG_TIME;
  }

  /** Keeps the longest turns in order. */
  #rank(time: number, work: number): void {
    const longest = this.#longest;
    const theirWork = this.#theirWork;
    let place = LEFT_OUT;
    for (; place > 0 && time > (longest[place - 1] as number); place -= 1) {
      if (place === LEFT_OUT) continue;
      longest[place] = longest[place - 1] as number;
      theirWork[place] = theirWork[place - 1] as number;
    }
    if (place === LEFT_OUT) return;
    longest[place] = time;
    theirWork[place] = work;
  }

  /** Work per millisecond. */
  get rate(): number {
    let time = this.#time;
    let work = this.#work;
    for (let place = 0; place < Math.min(LEFT_OUT, this.#turns >> 2); place += 1) {
      time -= this.#longest[place] as number;
      work -= this.#theirWork[place] as number;
    }
    // A clock that stands still between turns has the whole time in the longest.
    return time > 0 ? work / time : this.#work / this.#time;
  }
}
