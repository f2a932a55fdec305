/** A product page, put together from eight hashes that different teams own and fill. */
export interface ProductPage {
  id: string;
  name: string;
  price: string | null;
  stock: string | null;
  seller: string | null;
  rating: string | null;
  shipping: string | null;
  category: string | null;
  promo: string | null;
}

export type Detail = Exclude<keyof ProductPage, 'id'>;

/** Which hash holds a detail, and under which field. */
export const HASHES: Readonly<Record<Detail, { hash: string; field: string }>> = {
  name: { hash: 'product', field: 'name' },
  price: { hash: 'price', field: 'amount' },
  stock: { hash: 'stock', field: 'available' },
  seller: { hash: 'seller', field: 'display' },
  rating: { hash: 'reviews', field: 'average' },
  shipping: { hash: 'shipping', field: 'estimate' },
  category: { hash: 'category', field: 'path' },
  promo: { hash: 'promo', field: 'label' },
};

export const DETAILS = Object.keys(HASHES) as Detail[];

export function keyOf(prefix: string, detail: Detail, id: string): string {
  return `${prefix}${HASHES[detail].hash}:${id}`;
}

/** Prefixes of the products' keys: read by every page, seldom written. */
export function productPrefixes(prefix: string): string[] {
  return Object.values(HASHES).map(({ hash }) => `${prefix}${hash}:`);
}

export class ProductNotFound extends Error {
  readonly statusCode = 404;

  constructor(id: string) {
    super(`there is no product "${id}"`);
    this.name = 'ProductNotFound';
  }
}

const SELLERS = ['North Works', 'Harbour & Sons', 'Field Supply', 'Old Mill', 'Quay Trading'];
const CATEGORIES = ['home/kitchen', 'home/garden', 'outdoor/camping', 'office/desk', 'sports/cycling'];
const NOUNS = ['Kettle', 'Lantern', 'Stool', 'Notebook', 'Pannier', 'Trowel', 'Flask'];

/** Always the same product for the same number: the seed writes it, and the route without Redis serves it. */
function sampleProduct(number: number): ProductPage {
  const pick = (list: readonly string[]): string => list[number % list.length] ?? '';
  return {
    id: String(number),
    name: `${pick(NOUNS)} no. ${number}`,
    price: `${10 + (number % 90)}.${String(number % 100).padStart(2, '0')} EUR`,
    stock: String((number * 7) % 250),
    seller: pick(SELLERS),
    rating: (3 + (number % 20) / 10).toFixed(1),
    shipping: `${1 + (number % 5)} to ${3 + (number % 5)} working days`,
    category: pick(CATEGORIES),
    promo: `${(number % 6) * 5}% off until Sunday`,
  };
}

export function sampleProducts(count: number): ProductPage[] {
  return Array.from({ length: count }, (_, index) => sampleProduct(index + 1));
}
