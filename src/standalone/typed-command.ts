// Commands as the user of this mesh types them, for what is printed and for errors.
import { relative } from 'node:path'
import { defaultStateDir } from '../util/index.ts'
import { quote } from './node/mounts.ts'
import { ownCommand } from './paths.ts'
import { isRootless } from './rootless.ts'

/** `lateen status`, say, with the state directory unless it is the default one. */
export function typedCommand(stateDir: string, command: string): string {
  // Without root this process is root in a namespace of its own, and the default of the user outside is another.
  const named = stateDir === defaultStateDir() || isRootless() ? '' : ` --state-dir ${shellWord(stateDir)}`
  return `${typedProgram()} ${command}${named}`
}

/** How a user calls this program: by its path in a checkout, by npx where npm started it, else by its name. */
export function typedProgram(env: NodeJS.ProcessEnv = process.env): string {
  if (import.meta.filename.endsWith('.ts')) return shellWord(relative(process.cwd(), ownCommand().at(-1) ?? ''))
  return env.npm_command === undefined ? 'lateen' : 'npx lateen'
}

export function shellWord(text: string): string {
  return /^[\w./:=@-]+$/.test(text) ? text : quote(text)
}
