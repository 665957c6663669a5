// The headers of a CONNECT besides the authority: forwarded, traceparent, x-forwarded-network.
import { randomFillSync } from 'node:crypto'
import type { Service, SocketAddress, Workload } from '../model.ts'
import { formatAddress } from '../state/address.ts'
import { buildBaggage } from './baggage.ts'

/** A W3C trace context, new for every connection. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
}

export interface ConnectHeadersInput {
  readonly source: Workload
  readonly from: SocketAddress
  readonly service?: Service
  readonly trace: TraceContext
  /** Our own network; given for the inner CONNECT of a double HBONE only. */
  readonly forwardedNetwork?: string
}

/** The headers of a CONNECT, without pseudo headers. */
export function connectHeaders(input: ConnectHeadersInput): Record<string, string> {
  const baggage = buildBaggage(input.source)
  return {
    ...(baggage === '' ? {} : { baggage }),
    forwarded: buildForwarded(input.from, input.service?.hostname),
    traceparent: buildTraceparent(input.trace),
    ...(input.forwardedNetwork === undefined ? {} : { 'x-forwarded-network': input.forwardedNetwork }),
  }
}

export function buildForwarded(from: SocketAddress, serviceHostname?: string): string {
  const host = serviceHostname === undefined ? '' : `;host=${serviceHostname}`
  return `for="${formatAddress(from)}"${host}`
}

/** The host a `forwarded` header names; undefined when there is none or the header is not plain ASCII. */
export function parseForwardedHost(value: string | undefined): string | undefined {
  if (value === undefined || !/^[\x20-\x7e\t]*$/.test(value)) return undefined
  const part = value
    .split(';')
    .map((one) => one.trim())
    .find((one) => one.startsWith('host='))
  const host = part?.slice('host='.length).replace(/^"(.*)"$/, '$1')
  return host === undefined || host === '' ? undefined : host
}

const traceBytes = 24

/** Returns the function that makes trace contexts, each new. They are drawn for many connections at once: few bytes cost what many do. */
export function createTraceContexts(): () => TraceContext {
  const drawn = Buffer.alloc(traceBytes * 64)
  let used = drawn.length
  return () => {
    if (used === drawn.length) {
      randomFillSync(drawn)
      used = 0
    }
    const text = drawn.toString('hex', used, used + traceBytes)
    used += traceBytes
    return { traceId: text.slice(0, 32), spanId: text.slice(32) }
  }
}

export const buildTraceparent = (trace: TraceContext): string => `00-${trace.traceId}-${trace.spanId}-00`

/** Reads `version-trace-span-flags` of exactly 55 characters; anything else is undefined. */
export function parseTraceparent(value: string | undefined): TraceContext | undefined {
  const match = /^[0-9a-fA-F]{2}-([0-9a-fA-F]{32})-([0-9a-fA-F]{16})-[0-9a-fA-F]{2}$/.exec(value ?? '')
  if (match?.[1] === undefined || match[2] === undefined) return undefined
  return { traceId: match[1].toLowerCase(), spanId: match[2].toLowerCase() }
}
