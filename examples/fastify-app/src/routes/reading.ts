import type { FastifyInstance } from 'fastify';
import { Catalog } from '../catalog.js';
import { ProductNotFound, type ProductPage, sampleProducts } from '../product.js';
import { type ById, PRODUCT_ROUTE } from './product-schema.js';

export interface ReadingOptions {
  keyPrefix: string;
  products: number;
}

/** For measurements: the product page, read in the three ways and from memory, with nothing else. */
export async function readingRoutes(app: FastifyInstance, { keyPrefix, products }: ReadingOptions): Promise<void> {
  const catalog = new Catalog(app.redis, keyPrefix);
  const inMemory = new Map(sampleProducts(products).map((product) => [product.id, product]));

  app.get<ById>('/sequential/:id', PRODUCT_ROUTE, async ({ params }) => catalog.readInSequence(params.id));
  app.get<ById>('/parallel/:id', PRODUCT_ROUTE, async ({ params }) => catalog.readInParallel(params.id));
  app.get<ById>('/pipeline/:id', PRODUCT_ROUTE, async ({ params }) => catalog.readInPipeline(params.id));
  app.get<ById>('/no-redis/:id', PRODUCT_ROUTE, async ({ params }): Promise<ProductPage> => {
    const product = inMemory.get(params.id);
    if (!product) {
      throw new ProductNotFound(params.id);
    }
    return product;
  });
}
