/** Compiled by the test, as `nest build` does: Node finds the lines by the source map. */
import 'reflect-metadata';
import type { AddressInfo } from 'node:net';
import { Controller, ForbiddenException, Get, Param } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Redis } from 'ioredis-coalesce';

const RUNS = 12;

class Store {
  constructor(
    readonly redis: Redis,
    readonly prefix: string,
  ) {}

  user(run: number): Promise<Record<string, string>> {
    return this.redis.hgetall(`${this.prefix}user:${run}`);
  }

  cartSize(run: number): Promise<number> {
    // advice: together
    return this.redis.llen(`${this.prefix}cart:${run}`);
  }
}

class ShopController {
  constructor(readonly store: Store) {}

  async cart(run: string): Promise<unknown> {
    const user = await this.store.user(Number(run));
    return { user, size: await this.store.cartSize(Number(run)) };
  }

  async owner(run: string): Promise<unknown> {
    const { redis, prefix } = this.store;
    const { owner } = await redis.hgetall(`${prefix}shop:${run}`);
    // advice: argument
    return redis.hget(`${prefix}${owner}`, 'name');
  }

  async guarded(run: string): Promise<unknown> {
    const { redis, prefix } = this.store;
    const role = await redis.get(`${prefix}role:${run}`);
    if (role !== 'admin') throw new ForbiddenException();
    // advice: if
    return redis.scard(`${prefix}tags:${run}`);
  }

  async stock(run: string): Promise<unknown> {
    const { redis, prefix } = this.store;
    const stock = Number(await redis.get(`${prefix}stock:${run}`));
    // advice: leave
    if (stock > 0) await redis.rpush(`${prefix}orders`, `order-${run}`);
    return {};
  }

  async names(): Promise<unknown> {
    const { redis, prefix } = this.store;
    const names: unknown[] = [];
    // advice: together
    for (let item = 0; item < 4; item += 1) names.push(await redis.hget(`${prefix}user:${item}`, 'name'));
    return names;
  }

  async batch(run: string): Promise<unknown> {
    const { redis, prefix } = this.store;
    await redis.pipeline().get(`${prefix}session:${run}`).hgetall(`${prefix}user:${run}`).exec();
    // advice: together
    return redis.zcard(`${prefix}scores:${run}`);
  }

  async replica(run: string): Promise<unknown> {
    const { redis, prefix } = this.store;
    const found = await redis.get(`${prefix}${Number(run) % 2 ? 'session' : 'none'}:${run}`);
    // advice: if
    return { value: found ?? (await redis.get(`${prefix}item:${Number(run) % 5}`)) };
  }

  async counted(run: string): Promise<unknown> {
    const { redis, prefix } = this.store;
    await redis.incr(`${prefix}visits`);
    // advice: together
    return redis.hgetall(`${prefix}user:${run}`);
  }
}

const NAMES = ['cart', 'owner', 'guarded', 'stock', 'names', 'batch', 'replica', 'counted'] as const;

export async function nest(redis: Redis, prefix: string): Promise<void> {
  // As decorators would do it: the compiler that runs the tests has them in another dialect than Nest.
  Controller()(ShopController);
  for (const name of NAMES) {
    Get(`${name}/:run`)(
      ShopController.prototype,
      name,
      Object.getOwnPropertyDescriptor(ShopController.prototype, name) as PropertyDescriptor,
    );
    Param('run')(ShopController.prototype, name, 0);
  }
  Reflect.defineMetadata('design:paramtypes', [Store], ShopController);
  const providers = [{ provide: Store, useValue: new Store(redis, prefix) }];
  const app = await NestFactory.create(
    { module: class Shop {}, controllers: [ShopController], providers },
    { logger: ['error'] },
  );
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as AddressInfo;
  for (const name of NAMES) {
    for (let run = 0; run < RUNS; run += 1) {
      const { status } = await fetch(`http://127.0.0.1:${port}/${name}/${run}`);
      if (status !== 200 && status !== 403) throw new Error(`${name}: ${status}`);
    }
  }
  await app.close();
}
