/** Node has it since version 20; the language's library that is compiled for does not know it yet. */
interface String {
  isWellFormed(): boolean;
}
