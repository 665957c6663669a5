// The paths of the admin and stats servers.

import { pipeline, Readable } from 'node:stream'
import { constants, createBrotliCompress, createDeflate, createGzip, createZstdCompress } from 'node:zlib'
import {
  expositionContentType,
  type Logging,
  type MetricsRegistry,
  negotiateExposition,
  streamMetrics,
} from '../../observability/index.ts'
import type { ProcessProfiler } from '../profiling/index.ts'
import { type ConfigDumpSources, dumpAll } from './config-dump.ts'
import { createHeapProfiling } from './heap.ts'
import type { Handle, HttpAnswer, Routes } from './http-server.ts'
import { serveLogging } from './logging.ts'
import { serveCpuProfile } from './profile.ts'

export interface AdminOptions {
  readonly logging: Logging
  readonly dump: ConfigDumpSources
  readonly profiler: ProcessProfiler
  /** Starts a graceful shutdown. */
  readonly shutDown: () => void
}

const plain = (status: number, body: string): HttpAnswer => ({ status, contentType: 'text/plain; charset=utf-8', body })

/** Port 15000. */
export function adminRoutes({ logging, dump, profiler, shutDown }: AdminOptions): Routes {
  const heap = createHeapProfiling(profiler)
  return new Map<string, Handle>([
    ['/', () => ({ status: 200, contentType: 'text/html; charset=utf-8', body: indexPage })],
    [
      '/config_dump',
      async () => ({
        status: 200,
        contentType: 'application/json',
        body: `${JSON.stringify(await dumpAll(dump), undefined, 2)}\n`,
      }),
    ],
    ['/logging', serveLogging(logging)],
    [
      '/quitquitquit',
      ({ method }) => {
        if (method !== 'POST') return plain(405, 'Invalid HTTP method\n')
        shutDown()
        return plain(200, 'shutdown now\n')
      },
    ],
    ['/debug/pprof/profile', serveCpuProfile(profiler)],
    ['/debug/pprof/heap', heap.profile],
    ['/debug/pprof/heap/profiling', heap.toggle],
  ])
}

/** Port 15020. */
export function statsRoutes(registry: MetricsRegistry): Routes {
  const serve: Handle = ({ headers }) => {
    const format = negotiateExposition(headers.accept)
    const text = Readable.from(streamMetrics(registry, format))
    const encoding = chooseEncoding(headers['accept-encoding'])
    const contentType = expositionContentType[format]
    if (encoding === undefined) return { status: 200, contentType, body: text }
    // A failure ends the compressor too, which is where it is seen.
    const body = pipeline(text, compressors[encoding](), () => undefined)
    return { status: 200, contentType, headers: { 'content-encoding': encoding, vary: 'accept-encoding' }, body }
  }
  return new Map([
    ['/metrics', serve],
    ['/stats/prometheus', serve],
  ])
}

// Scrapes are frequent: compress fast rather than well.
const compressors = {
  gzip: () => createGzip({ level: 1 }),
  zstd: () => createZstdCompress(),
  br: () => createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  deflate: () => createDeflate({ level: 1 }),
} as const

type Encoding = keyof typeof compressors
const preferred: readonly Encoding[] = ['zstd', 'gzip', 'br', 'deflate']

function chooseEncoding(accepted: string | string[] | undefined): Encoding | undefined {
  const named = String(accepted ?? '')
    .split(',')
    .map((entry) => entry.split(';').map((part) => part.trim().toLowerCase()))
    .filter(([, ...parameters]) => !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter)))
    .map(([name]) => name)
  return preferred.find((encoding) => named.includes(encoding))
}

const pages: readonly (readonly [path: string, what: string])[] = [
  ['config_dump', 'dump the current configuration and state'],
  ['logging', 'query and change log levels (POST)'],
  ['quitquitquit', 'shut down gracefully (POST)'],
  ['debug/pprof/profile', 'CPU profile of the next seconds, in pprof format'],
  ['debug/pprof/heap/profiling', 'start or stop sampling of allocations (?activate=true|false)'],
  ['debug/pprof/heap', 'what memory is held by, while allocations are sampled, in pprof format'],
]

const indexPage = `<!DOCTYPE html>
<html lang="en"><head><title>Node proxy</title></head>
<body><h1>Node proxy</h1><table>
${pages.map(([path, what]) => `<tr><td><a href="${path}">${path}</a></td><td>${what}</td></tr>`).join('\n')}
</table></body></html>
`
