// Requests over the node agent's unix sockets: a new pod, log lines.
import { request } from 'node:http'
import type { AddEvent } from './add.ts'
import { CniError } from './config.ts'

interface Answer {
  readonly status: number
  readonly body: string
}

function post(socketPath: string, path: string, body: unknown, timeoutMs: number): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        socketPath,
        path,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        signal: AbortSignal.timeout(timeoutMs),
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') }),
        )
      },
    )
    outgoing.on('error', reject)
    outgoing.end(JSON.stringify(body))
  })
}

const addLimitMs = 5_000
const logLimitMs = 1_000

/** Asks the agent to capture a pod, once: the runtime repeats the whole ADD. Rejects with a CniError unless the agent says it is done. */
export async function notifyAgent(runDir: string, event: AddEvent): Promise<void> {
  const failed = 'istio-cni cmdAdd failed to contact node Istio CNI agent'
  let answer: Answer
  try {
    answer = await post(`${runDir}/pluginevent.sock`, '/cmdadd', event, addLimitMs)
  } catch (error) {
    throw new CniError(`${failed}: failed to send event request: ${(error as Error).message}`)
  }
  if (answer.status !== 200) {
    throw new CniError(`${failed}: unable to push CNI event (status code ${answer.status}): ${answer.body}`)
  }
}

/** Hands log lines to the agent. A failure is nobody's concern: the lines are on stderr and in the file too. */
export async function sendLog(runDir: string, lines: readonly string[]): Promise<void> {
  await post(`${runDir}/log.sock`, '/log', lines, logLimitMs).catch(() => undefined)
}
