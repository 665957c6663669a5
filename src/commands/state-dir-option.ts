// The value of `--state-dir`.
import { InvalidArgumentError } from 'commander'

/** Refuses the empty text of a variable that is not set: it would be the current directory. */
export function parseStateDir(text: string): string {
  if (text === '') throw new InvalidArgumentError('expected a directory')
  return text
}
