// The application protocol a port declares.
import { workload } from '../../../proto/index.ts'

const { AppProtocol } = workload

/** Words with a protocol of their own; words that are known but have none here map to UNKNOWN. */
const words: Readonly<Record<string, workload.AppProtocol>> = {
  http: AppProtocol.HTTP11,
  http2: AppProtocol.HTTP2,
  grpc: AppProtocol.GRPC,
  tls: AppProtocol.TLS,
  https: AppProtocol.TLS,
  tcp: AppProtocol.TCP,
  'grpc-web': AppProtocol.UNKNOWN,
  http_proxy: AppProtocol.UNKNOWN,
  udp: AppProtocol.UNKNOWN,
  mongo: AppProtocol.UNKNOWN,
  redis: AppProtocol.UNKNOWN,
  mysql: AppProtocol.UNKNOWN,
  hbone: AppProtocol.UNKNOWN,
  doublehbone: AppProtocol.UNKNOWN,
}

const kubernetesProtocols: Readonly<Record<string, string>> = {
  'kubernetes.io/h2c': 'http2',
  'kubernetes.io/ws': 'http',
  'kubernetes.io/wss': 'tls',
}

/** Ports whose servers speak first: never sniffed. */
const serverFirstPorts = new Set([25, 53, 3306, 27017])

export function appProtocolOfServicePort(port: {
  readonly protocol?: string
  readonly appProtocol?: string
  readonly name?: string
  readonly port: number
}): workload.AppProtocol {
  if (port.protocol === 'UDP') return AppProtocol.UNKNOWN
  const appProtocol = port.appProtocol
  const text = appProtocol === undefined ? (port.name ?? '') : (kubernetesProtocols[appProtocol] ?? appProtocol)
  const lower = text.toLowerCase()
  if (lower.startsWith('grpc-web')) return AppProtocol.UNKNOWN
  const [word = ''] = lower.split('-')
  return knownWord(word) ?? (serverFirstPorts.has(port.port) ? AppProtocol.TCP : AppProtocol.UNKNOWN)
}

export function appProtocolOfWord(protocol: string | undefined): workload.AppProtocol {
  return knownWord((protocol ?? '').toLowerCase()) ?? AppProtocol.UNKNOWN
}

function knownWord(word: string): workload.AppProtocol | undefined {
  return Object.hasOwn(words, word) ? words[word] : undefined
}
