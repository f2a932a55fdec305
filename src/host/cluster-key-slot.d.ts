/** The package has no types of its own. */
declare module 'cluster-key-slot' {
  /** The hash slot of a key, 0 to 16383; of its hash tag if it has one (Redis Cluster specification). */
  export default function calculateSlot(key: string | Buffer): number;
}
