// Settings of the JavaScript heap that V8 takes at its start only.

/** The process replaces itself, keeping its id, unless it was started with these flags. Where that cannot be done it goes on as it is. */
export function restartWithHeapFlags(flags: readonly string[], env: Readonly<Record<string, string>> = {}): void {
  if (process.execve === undefined || flags.every((flag) => process.execArgv.includes(flag))) return
  const args = [process.execPath, ...flags, ...process.execArgv, ...process.argv.slice(1)]
  process.execve(process.execPath, args, { ...env, ...process.env })
}
