// The unix socket on which the CNI plugin announces new pods and hands over its log lines.
import { mkdirSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Namespace, Pod } from 'kubernetes-types/core/v1.js'
import { type EnablementSelector, isEligible } from '../eligibility.ts'
import type { AddEvent } from '../plugin/add.ts'

export interface PluginServerOptions {
  readonly runDir: string
  readonly selectors: readonly EnablementSelector[]
  readonly find: (namespace: string, name: string) => { pod: Pod; namespace: Namespace } | undefined
  readonly enroll: (pod: Pod, netnsPath: string, ips: readonly string[]) => Promise<void>
  /** Called with the status of each answer. */
  readonly onAnswer: (status: number) => void
  readonly log: (level: 'info' | 'warn' | 'error', message: string) => void
  readonly pluginLog: (line: string) => void
}

interface Answer {
  readonly status: 200 | 400 | 404 | 500
  readonly text: string
}

const maxBodyBytes = 1024 * 1024

/** Listens on `<runDir>/pluginevent.sock` and `<runDir>/log.sock`; the log socket is there first, as the plugin looks for it. */
export async function startPluginServer(options: PluginServerOptions): Promise<AsyncDisposable> {
  const servers = [
    await listen(`${options.runDir}/log.sock`, '/log', async (body) => {
      const lines: unknown = JSON.parse(body)
      if (!Array.isArray(lines)) return { status: 400, text: 'expected a list of lines' }
      for (const line of lines) options.pluginLog(String(line))
      return { status: 200, text: '' }
    }),
    await listen(`${options.runDir}/pluginevent.sock`, '/cmdadd', async (body) => {
      const answer = await add(body, options)
      options.onAnswer(answer.status)
      if (answer.status !== 200) options.log('warn', `the CNI plugin's request was refused: ${answer.text}`)
      return answer
    }),
  ]
  return {
    [Symbol.asyncDispose]: async () => {
      for (const server of servers) {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      }
    },
  }
}

async function listen(path: string, urlPath: string, handle: (body: string) => Promise<Answer>): Promise<Server> {
  mkdirSync(dirname(path), { recursive: true })
  rmSync(path, { force: true })
  const server = createServer(async (request, response) => {
    let answer: Answer
    try {
      answer =
        request.method === 'POST' && request.url === urlPath
          ? await handle(await bodyOf(request))
          : { status: 404, text: `expected POST ${urlPath}` }
    } catch (error) {
      answer = { status: error instanceof SyntaxError ? 400 : 500, text: (error as Error).message }
    }
    response.writeHead(answer.status).end(answer.text)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, resolve)
  })
  return server
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBodyBytes) throw new Error('the request is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The pod's object may reach the agent after the plugin's call: it is looked for a little while. */
const lookup = { tries: 10, intervalMs: 10 } as const

async function add(body: string, options: PluginServerOptions): Promise<Answer> {
  const event = parseEvent(body)
  if (event === undefined) return { status: 400, text: 'expected {"Netns", "PodName", "PodNamespace", "IPs"}' }
  const name = `${event.PodNamespace}/${event.PodName}`
  const find = () => {
    const known = options.find(event.PodNamespace, event.PodName)
    // An earlier pod of the same name is another pod.
    return event.PodUID === undefined || known?.pod.metadata?.uid === event.PodUID ? known : undefined
  }
  let found = find()
  for (let tries = 1; found === undefined && tries < lookup.tries; tries += 1) {
    await sleep(lookup.intervalMs)
    found = find()
  }
  if (found === undefined)
    return { status: 500, text: `pod ${name} or its namespace is not known to the node agent yet` }
  if (!isEligible(found.pod, found.namespace.metadata?.labels ?? {}, options.selectors)) {
    return { status: 500, text: `pod ${name} is unexpectedly not eligible for ambient enrollment` }
  }
  await options.enroll(
    found.pod,
    event.Netns,
    (event.IPs ?? []).map(({ Address }) => Address.IP),
  )
  return { status: 200, text: '' }
}

function parseEvent(body: string): AddEvent | undefined {
  const event = JSON.parse(body) as Partial<AddEvent> | null
  const texts = [event?.Netns, event?.PodName, event?.PodNamespace]
  if (texts.some((text) => typeof text !== 'string' || text === '')) return undefined
  if (event?.PodUID !== undefined && typeof event.PodUID !== 'string') return undefined
  const ips = event?.IPs ?? []
  return Array.isArray(ips) && ips.every((one) => typeof one?.Address?.IP === 'string')
    ? (event as AddEvent)
    : undefined
}
