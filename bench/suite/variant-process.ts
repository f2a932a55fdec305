import type { VariantId } from '../variants/clients.js';
import type { ClientOptions, Measured, Sample, Workload } from '../variants/protocol.js';
import type { Requests } from '../variants/requests.js';
import type { BenchServer } from './bench-server.js';
import type { Bundle } from './bundle.js';
import { Child } from './child.js';
import { MissingError } from './tool.js';

/** What a round is asked of: a variant's process, or a route of the example. */
export interface Runnable {
  /** Whether it works on after `close()`, for the next round. */
  readonly isKept?: true;
  prepare(workload: Workload, seconds: number, verify: boolean): Promise<unknown>;
  measure(workload: Workload, seconds: number): Promise<Measured>;
  probe(workload: Workload, seconds: number): Promise<Sample>;
  close(): Promise<void>;
  kill(): void;
}

/** A sample, with the CPU that the server spent on it. */
export async function withServerCpu(server: BenchServer, measure: () => Promise<Measured>): Promise<Measured> {
  const [sample, cpuUs] = await server.cpuDuring(measure);
  return { ...sample, serverCpu: cpuUs / sample.commands };
}

/** A variant's process, from the parent's side. */
export class VariantProcess extends Child implements Runnable {
  readonly #server: BenchServer;

  /**
   * @param url - where not the server's own: a proxy in front of it
   * @throws {MissingError} where the package has no such variant yet
   */
  static async open(
    variant: VariantId,
    { files, nodePath }: Bundle,
    server: BenchServer,
    options: ClientOptions = {},
    url = server.url,
  ): Promise<VariantProcess> {
    const opened = new VariantProcess(variant, files.variant, server, nodePath);
    try {
      const order = { variant, url, prefix: server.prefix, options };
      const { packagePath, unsupported } = await opened.#ask('open', order);
      if (unsupported !== undefined) throw new MissingError(`${variant} is not supported (${unsupported})`);
      if (packagePath !== undefined && !packagePath.includes('/dist/')) {
        throw new Error(`${variant} should measure the built package, got ${packagePath}`);
      }
      return opened;
    } catch (error) {
      opened.kill();
      throw error;
    }
  }

  private constructor(variant: VariantId, file: string, server: BenchServer, nodePath: string) {
    super(variant, file, { execArgv: ['--expose-gc'], prints: true, execPath: nodePath });
    this.#server = server;
  }

  prepare(workload: Workload, seconds: number, verify: boolean): Promise<unknown> {
    return this.#ask('prepare', { workload, seconds, verify });
  }

  measure(workload: Workload, seconds: number): Promise<Measured> {
    return withServerCpu(this.#server, () => this.#ask('measure', { workload, seconds }));
  }

  probe(workload: Workload, seconds: number): Promise<Sample> {
    return this.#ask('probe', { workload, seconds });
  }

  async close(): Promise<void> {
    await this.#ask('close', {});
    await this.stop();
  }

  #ask<T extends keyof Requests>(type: T, order: Parameters<Requests[T]>[0]): ReturnType<Requests[T]> {
    return this.ask({ type, order }) as ReturnType<Requests[T]>;
  }
}
