// Errors about words of the command line, with where to read what was expected.
import type { Command } from 'commander'

/**
 * Lets errors of a command and of those below it end with where its help is.
 *
 * @param typed the command with what stands before it: `lateen manifest`
 */
export function pointToHelp(command: Command, typed: string): Command {
  command.configureOutput({
    outputError: (text, write) => write(`${text.trimEnd()} ("${typed} --help" shows what it takes)\n`),
  })
  for (const sub of command.commands) pointToHelp(sub, `${typed} ${sub.name()}`)
  return command
}
