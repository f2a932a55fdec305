/** One change of a host's text. */
export interface Edit {
  /** In the host's `built`; with a slash in front, in another package. Without it: all files of the host. */
  readonly file?: string;
  /** Is there exactly once, unless `everywhere`. */
  readonly search: string;
  readonly replace: string;
  readonly everywhere?: boolean;
}
/** The text of a file, with the edits that are meant for it. `folder` is the host's in `node_modules`. */
export function mutate(text: string, path: string, folder: string, edits: readonly Edit[]): string;
