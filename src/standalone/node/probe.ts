// One probe of a container: HTTP, TCP, gRPC health or a command.
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import net from 'node:net'
import type { Container, Probe } from './types.ts'

export interface ProbeTarget {
  readonly ip: string
  readonly container: Container
  /** Runs a command in the container; resolves with its exit code and output. */
  exec(argv: readonly string[], timeoutMs: number): Promise<{ code: number; output: string }>
}

export interface ProbeOutcome {
  readonly success: boolean
  readonly message: string
}

export type ProbeAction = Pick<Probe, 'httpGet' | 'tcpSocket' | 'grpc' | 'exec'>

/** Runs the probe once. Never rejects. */
export async function runProbe(probe: ProbeAction, target: ProbeTarget, timeoutMs: number): Promise<ProbeOutcome> {
  try {
    if (probe.httpGet) return await httpProbe(probe.httpGet, target, timeoutMs)
    if (probe.tcpSocket) {
      const host = probe.tcpSocket.host || target.ip
      return await tcpProbe(host, portNumber(probe.tcpSocket.port, target.container), timeoutMs)
    }
    if (probe.grpc) return await grpcProbe(target.ip, probe.grpc.port, probe.grpc.service ?? '', timeoutMs)
    if (probe.exec) {
      const { code, output } = await target.exec(probe.exec.command ?? [], timeoutMs)
      return { success: code === 0, message: output.trim().slice(0, 1024) || `command ended with code ${code}` }
    }
    return { success: true, message: 'nothing to probe' }
  } catch (error) {
    return { success: false, message: error instanceof Error ? error.message : String(error) }
  }
}

/** The number of a port given as a number or by its name in the container. */
export function portNumber(port: number | string, container: Container): number {
  const number = Number(port)
  if (Number.isInteger(number) && number > 0 && number < 65536) return number
  const named = container.ports?.find((candidate) => candidate.name === port)?.containerPort
  if (named === undefined) throw new Error(`container ${container.name} has no port named ${port}`)
  return named
}

function httpProbe(
  action: NonNullable<Probe['httpGet']>,
  target: ProbeTarget,
  timeoutMs: number,
): Promise<ProbeOutcome> {
  const { promise, resolve } = Promise.withResolvers<ProbeOutcome>()
  const secure = action.scheme?.toUpperCase() === 'HTTPS'
  const host = action.host || target.ip
  const port = portNumber(action.port, target.container)
  const headers: Record<string, string> = { 'User-Agent': 'kube-probe/1.34', Accept: '*/*' }
  for (const { name, value } of action.httpHeaders ?? []) headers[name] = value
  const request = (secure ? https : http).request({
    host,
    port,
    path: action.path || '/',
    method: 'GET',
    headers,
    agent: false,
    rejectUnauthorized: false, // a probe asks whether the program answers, not who it is
    signal: AbortSignal.timeout(timeoutMs),
  })
  request.once('response', (response) => {
    const status = response.statusCode ?? 0
    response.destroy()
    const success = status >= 200 && status < 400
    resolve({ success, message: `HTTP probe ${success ? 'succeeded' : 'failed'} with statuscode: ${status}` })
  })
  request.on('error', (error) => resolve({ success: false, message: timedOut(error, timeoutMs) }))
  request.end()
  return promise
}

function tcpProbe(host: string, port: number, timeoutMs: number): Promise<ProbeOutcome> {
  const { promise, resolve } = Promise.withResolvers<ProbeOutcome>()
  const socket = net.connect({ host, port, signal: AbortSignal.timeout(timeoutMs) })
  socket.once('connect', () => {
    resolve({ success: true, message: `connected to ${host}:${port}` })
    socket.destroy()
  })
  socket.on('error', (error) => resolve({ success: false, message: timedOut(error, timeoutMs) }))
  return promise
}

function timedOut(error: Error, timeoutMs: number): string {
  return error.name === 'AbortError' || error.name === 'TimeoutError'
    ? `no answer within ${timeoutMs} ms`
    : error.message
}

/** grpc.health.v1.Health/Check without a gRPC library: one request frame, one field in the answer. */
async function grpcProbe(host: string, port: number, service: string, timeoutMs: number): Promise<ProbeOutcome> {
  const { promise, resolve } = Promise.withResolvers<ProbeOutcome>()
  const session = http2.connect(`http://${host.includes(':') ? `[${host}]` : host}:${port}`)
  const fail = (message: string) => resolve({ success: false, message })
  const timer = setTimeout(() => fail(`no answer within ${timeoutMs} ms`), timeoutMs)
  session.on('error', (error) => fail(error.message))
  const stream = session.request({
    ':method': 'POST',
    ':path': '/grpc.health.v1.Health/Check',
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  const chunks: Buffer[] = []
  let status: string | undefined
  stream.on('response', (headers) => (status = headers['grpc-status']?.toString()))
  stream.on('trailers', (headers) => (status = headers['grpc-status']?.toString()))
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  stream.on('error', (error) => fail(error.message))
  stream.on('close', () => {
    const serving = Buffer.concat(chunks)
      .subarray(5)
      .equals(Buffer.from([0x08, 0x01]))
    if (status === '0' && serving) resolve({ success: true, message: 'SERVING' })
    else fail(status === '0' ? 'service is not SERVING' : `gRPC status ${status ?? 'unknown'}`)
  })
  const name = Buffer.from(service)
  const message = name.length === 0 ? name : Buffer.concat([Buffer.from([0x0a, name.length]), name])
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  stream.end(Buffer.concat([head, message]))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    session.destroy()
  }
}
