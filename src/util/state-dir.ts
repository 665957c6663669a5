// Where the mesh of this machine keeps its state.
import { homedir } from 'node:os'
import { join } from 'node:path'

/** `/var/lib/lateen` for root, else the user's state folder (XDG base directory specification). */
export function defaultStateDir(env: Readonly<Record<string, string | undefined>> = process.env): string {
  if (process.getuid?.() === 0) return '/var/lib/lateen'
  return join(env.XDG_STATE_HOME || join(homedir(), '.local/state'), 'lateen')
}
