/**
 * Methods of Node's Buffer that its types omit. They skip the check of the encoding in `toString`. Other run times
 * require both bounds (Cloudflare's workerd).
 */
interface Buffer {
  latin1Slice(start: number, end: number): string;
  utf8Slice(start: number, end: number): string;
}
/** The package has no types of its own. */
declare module 'cluster-key-slot' {
  /** The hash slot of a key, 0 to 16383; of its hash tag if it has one (Redis Cluster specification). */
  export default function calculateSlot(key: string | Buffer): number;
}
