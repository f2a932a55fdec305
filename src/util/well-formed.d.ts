/** Node has it since version 20; the TypeScript library of the compile target does not declare it yet. */
interface String {
  isWellFormed(): boolean;
}
