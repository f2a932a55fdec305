import { availableParallelism } from 'node:os';
import type { Redis } from 'ioredis';
import type { Coalesced } from 'ioredis-coalesce';
import { RequestError } from '../errors.js';
import { addressOf } from '../redis.js';
import { readServerVersion } from '../server-info.js';
import { type Cascade, measureCascade } from './cascade.js';
import { Feed } from './feed.js';
import { latencyEdgesMs } from './load.js';
import { LoadRun, type RunSettings } from './load-run.js';
import { measureRequest, type RequestComparison } from './request.js';
import { Subject, type Variant } from './subject.js';

/** Why a run ended early, if nothing failed. */
class RunStopped extends Error {}
class RedisWentDown extends Error {}

export interface LaboratoryOptions {
  /** The clients under comparison. */
  plain: Redis;
  coalesced: Redis;
  cached: Redis & Coalesced;
  /** Coalesced, with `fuseReads`; only the cascade has it. */
  fused: Redis;
  /** Another connection: to ask the server for its CPU time and version. */
  observer: Redis;
  redisUrl: string;
  /** The prefix of every key. */
  prefix: string;
}

/** The clients, their measurements, one at a time, and the pages that watch. */
export class Laboratory {
  readonly feed = new Feed();
  readonly subjects: Record<Variant, Subject>;
  readonly #fused: Redis;
  readonly #observer: Redis;
  readonly #redisUrl: string;
  readonly #address: string;
  readonly #prefix: string;
  #version: string;
  #busyWith: string | undefined;
  #run: LoadRun | undefined;
  #hasFailedRun = false;
  readonly #closing = new AbortController();

  /** All clients are connected; their creator closes them. */
  static async open(options: LaboratoryOptions): Promise<Laboratory> {
    return new Laboratory(options, await readServerVersion(options.observer));
  }

  private constructor(options: LaboratoryOptions, version: string) {
    const { plain, coalesced, cached, fused, observer, redisUrl, prefix } = options;
    this.subjects = {
      plain: new Subject('plain', plain),
      coalesced: new Subject('coalesced', coalesced),
      cached: new Subject('cached', cached, () => cached.coalescer.stats().cache?.hits ?? 0),
    };
    this.#fused = fused;
    this.#observer = observer;
    this.#redisUrl = redisUrl;
    this.#address = addressOf(redisUrl);
    this.#prefix = prefix;
    this.#version = version;
    // First: how to draw the data of the other events.
    this.feed.set('setting', {
      latencyEdgesMs: latencyEdgesMs(),
      node: process.version,
      cores: availableParallelism(),
    });
    this.#showNoRun();
    this.#watch();
  }

  /** Returns at once; the feed gets the results. Throws if something else is under way. */
  startRun(settings: RunSettings, origin: string): void {
    this.#begin('a load run');
    const run = new LoadRun({
      origin,
      settings,
      subjects: this.subjects,
      observer: this.#observer,
      events: {
        progress: (progress) => this.feed.set('run', { state: 'running', settings, ...progress }),
        sample: (sample) => this.feed.tell('sample', sample),
      },
    });
    this.#run = run;
    this.#hasFailedRun = false;
    this.feed.set('run', { state: 'running', settings, fraction: 0, label: 'starting' });
    run
      .run()
      .then(
        (result) => this.feed.set('run', { state: 'done', ...result }),
        (error: Error) => this.#showFailure(settings, error),
      )
      .finally(() => {
        this.#run = undefined;
        this.#busyWith = undefined;
      });
  }

  stopRun(): void {
    this.#run?.stop(new RunStopped('the run was stopped'));
  }

  cascade(): Promise<Cascade> {
    const { subjects } = this;
    return this.#measure('a latency cascade', () =>
      measureCascade({ subjects, fused: this.#fused, observer: this.#observer, prefix: this.#prefix }),
    );
  }

  request(): Promise<RequestComparison> {
    const { redis } = this.subjects.plain;
    return this.#measure('a request', () =>
      measureRequest({
        writer: redis,
        redisUrl: this.#redisUrl,
        prefix: this.#prefix,
        signal: this.#closing.signal,
      }),
    );
  }

  async #measure<T>(what: string, measure: () => Promise<T>): Promise<T> {
    this.#begin(what);
    try {
      return await measure();
    } catch (error) {
      throw this.#isUp() ? error : new RequestError(503, this.#downText());
    } finally {
      this.#busyWith = undefined;
    }
  }

  /** Ends what is under way, and closes the feed. */
  stop(): void {
    this.stopRun();
    this.#closing.abort(new RequestError(503, 'the service is closing'));
    this.feed.close();
  }

  #begin(what: string): void {
    if (this.#busyWith !== undefined) {
      throw new RequestError(409, `${this.#busyWith} is under way: one at a time`);
    }
    if (!this.#isUp()) {
      throw new RequestError(503, this.#downText());
    }
    this.#busyWith = what;
  }

  /** Shows the pages whether Redis is there, whenever that changes. */
  #watch(): void {
    let told: boolean | undefined;
    const tell = (): void => {
      const up = this.#isUp();
      if (up !== told) {
        told = up;
        this.feed.set('redis', { up, address: this.#address, version: this.#version });
        // A failed run's figures are from a time when Redis was going down: they are not worth keeping.
        if (up && this.#hasFailedRun) {
          this.#showNoRun();
        }
        if (!up) {
          this.#run?.stop(new RedisWentDown(this.#downText()));
        }
      }
    };
    for (const redis of this.#clients()) {
      redis.on('ready', tell);
      redis.on('close', tell);
      // `close` is reported instead; without a listener, ioredis would print each attempt.
      redis.on('error', () => {});
    }
    this.#observer.on('ready', () => {
      // Another server may have come back.
      readServerVersion(this.#observer).then(
        (version) => {
          this.#version = version;
        },
        () => {},
      );
    });
    tell();
  }

  #showNoRun(): void {
    this.#hasFailedRun = false;
    this.feed.set('run', { state: 'none' });
  }

  #showFailure(settings: RunSettings, error: Error): void {
    if (error instanceof RunStopped) {
      this.feed.set('run', { state: 'stopped', settings });
    } else if (error instanceof RedisWentDown && this.#isUp()) {
      this.#showNoRun();
    } else {
      this.#hasFailedRun = true;
      this.feed.set('run', { state: 'failed', settings, reason: error.message });
    }
  }

  #isUp(): boolean {
    return this.#clients().every((redis) => redis.status === 'ready');
  }

  #clients(): Redis[] {
    return [...Object.values(this.subjects).map(({ redis }) => redis), this.#fused, this.#observer];
  }

  #downText(): string {
    return `Redis at ${this.#address} is not reachable`;
  }
}
