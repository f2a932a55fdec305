/**
 * Node's Buffer has these on its prototype; its types do not say so. They skip the check of the encoding in `toString`.
 * Other run times want both bounds (Cloudflare's workerd).
 */
interface Buffer {
  latin1Slice(start: number, end: number): string;
  utf8Slice(start: number, end: number): string;
}
