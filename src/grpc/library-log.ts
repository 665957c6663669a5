// What grpc-js has to say, among our own lines. By itself it writes headers it cannot read to standard error: tokens included, and as often
// as anybody sends some.
import { setLogger } from '@grpc/grpc-js'

/** Takes up the lines of the library for the rest of the process. The value of a header is left out of them. */
export function takeLibraryLog(write: (line: string) => void): void {
  setLogger({
    error: (message: unknown) => write(withoutHeaderValue(String(message))),
    info: () => {},
    debug: () => {},
  })
}

/** `Failed to add metadata entry <name>: <value>. …`: what follows the name is of the caller's making. */
function withoutHeaderValue(line: string): string {
  const name = /^Failed to add metadata entry ([^:\s]{1,100}):/.exec(line)?.[1]
  return name === undefined ? line : `a header cannot be read: ${name}`
}
