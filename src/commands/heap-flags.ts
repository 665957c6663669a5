// Settings of the JavaScript heap that V8 takes at its start only.
import { setImmediate } from 'node:timers/promises'

/** The process replaces itself, keeping its id, unless it was started with these flags. Where that cannot be done it goes on as it is. */
export async function restartWithHeapFlags(
  flags: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  if (process.execve === undefined || flags.every((flag) => process.execArgv.includes(flag))) return
  const args = [process.execPath, ...flags, ...process.execArgv, ...process.argv.slice(1)]
  // A signal that has come is only told in a turn of the event loop, and the new program would know nothing of it.
  await setImmediate()
  process.execve(process.execPath, args, { ...env, ...process.env })
}
