// The introspection port: the process itself as pages for people and JSON for tools, and log levels to be changed. For this machine alone.
import type { IncomingMessage } from 'node:http'
import { getHeapStatistics } from 'node:v8'
import type { Graph } from '../collections/index.ts'
import { type Logging, parseLevel } from '../observability/index.ts'
import { isFromHere } from './debug-access.ts'
import { jsonReply, type Reply, type Route, textReply } from './http-server.ts'
import { introspectionPage } from './introspection-page.ts'

export interface IntrospectionOptions {
  readonly logging: Logging
  /** Undefined until the model is there. */
  readonly graph: () => Graph | undefined
  readonly version: string
  readonly startedAt: Date
  /** Ends the process in order. */
  readonly exit: () => void
}

const topics = {
  scope: 'Log scopes',
  mem: 'Memory',
  env: 'Environment',
  proc: 'Process',
  args: 'Arguments',
  version: 'Version',
  signal: 'Signals',
  collection: 'Collections',
} as const

type Topic = keyof typeof topics

/** What the process does on a signal. SIGUSR1 is none of them: there it would open the debugger of the runtime. */
const signals = [
  { name: 'SIGTERM', effect: 'ends the process in order' },
  { name: 'SIGINT', effect: 'ends the process in order; a second one ends it at once' },
] as const

const secretName = /token|secret|passw|credential|key|auth|cookie/i

export function introspectionRoutes(options: IntrospectionOptions): (path: string) => Route | undefined {
  const values: Readonly<Record<Topic, () => unknown>> = {
    scope: () =>
      options.logging.scopes().map(({ name, description, level }) => ({ name, description, output_level: level })),
    mem: () => ({ ...process.memoryUsage(), heapLimit: getHeapStatistics().heap_size_limit }),
    env: () =>
      Object.entries(process.env)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, value = '']) => ({ name, value: secretName.test(name) && value !== '' ? '[redacted]' : value })),
    proc: () => ({
      pid: process.pid,
      ppid: process.ppid,
      node: process.version,
      startedAt: options.startedAt.toISOString(),
      uptimeSeconds: Math.round(process.uptime()),
      cpu: process.cpuUsage(),
    }),
    args: () => process.argv,
    version: () => ({ version: options.version, node: process.version }),
    signal: () => signals,
    collection: () => options.graph()?.describe() ?? [],
  }

  function get(path: string): Reply | undefined {
    const [, topic = '', form, rest] = /^\/(home|[a-z]+?)(z|j)(?:\/(.*))?$/.exec(path) ?? []
    if (path === '/' || (topic === 'home' && form === 'z')) return page('Lateen', Object.entries(topics))
    if (topic === 'home') return jsonReply(Object.keys(topics), true)
    if (!isTopic(topic)) return undefined
    if (topic === 'scope' && rest !== undefined && rest !== '') return scopeReply(rest)
    return form === 'j' ? jsonReply(values[topic](), true) : page(topics[topic], values[topic]())
  }

  function scopeReply(name: string): Reply {
    const scope = options.logging.scopes().find((one) => one.name === decodeURIComponent(name))
    if (scope === undefined) return textReply(404, `there is no scope ${name}\n`)
    return jsonReply({ name: scope.name, description: scope.description, output_level: scope.level }, true)
  }

  function page(title: string, value: unknown): Reply {
    return { status: 200, body: introspectionPage(title, value), contentType: 'text/html; charset=utf-8' }
  }

  function put(path: string, body: string): Reply {
    if (path === '/homej/exit') {
      options.exit()
      return textReply(200, '')
    }
    const signal = /^\/signalj\/(.+)$/.exec(path)?.[1]
    if (signal !== undefined) {
      if (signal !== 'SIGTERM') return textReply(400, `expected SIGTERM, not ${signal}\n`)
      options.exit()
      return textReply(202, '')
    }
    const name = /^\/scopej\/(.+)$/.exec(path)?.[1]
    if (name === undefined) return textReply(405, 'method not allowed\n')
    const level = levelOf(body)
    if (level === undefined) {
      return textReply(400, 'expected {"output_level": "none|error|warn|info|debug|trace"}\n')
    }
    const scope = decodeURIComponent(name)
    if (!options.logging.scopes().some((one) => one.name === scope)) {
      return textReply(404, `there is no scope ${name}\n`)
    }
    options.logging.setFilter(new Map(options.logging.filter).set(scope, level))
    return { ...scopeReply(name), status: 202 }
  }

  return (path) => (request: IncomingMessage, _url, body) => {
    // A web page open in a browser here could send its requests to this port.
    if (!isFromHere(request) || request.headers.origin !== undefined) return textReply(403, 'forbidden\n')
    return request.method === 'PUT' ? put(path, body) : (get(path) ?? textReply(404, 'not found\n'))
  }
}

function isTopic(text: string): text is Topic {
  return Object.hasOwn(topics, text)
}

function levelOf(body: string) {
  try {
    const value: unknown = JSON.parse(body)
    const level =
      typeof value === 'object' && value !== null && 'output_level' in value ? value.output_level : undefined
    return typeof level === 'string' ? parseLevel(level) : undefined
  } catch {
    return undefined
  }
}
