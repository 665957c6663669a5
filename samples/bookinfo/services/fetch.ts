// Asks for a URL once and prints the answer; ends with 1 when there is none. For machines that have no curl.
import { messageOf, say } from './server.ts'

const url = process.env.URL ?? process.argv.at(-1) ?? ''
try {
  const response = await fetch(url, { signal: AbortSignal.timeout(5_000) })
  say((await response.text()).trimEnd())
  if (!response.ok) process.exitCode = 1
} catch (error) {
  process.stderr.write(`${url}: ${messageOf(error)}\n`)
  process.exitCode = 1
}
