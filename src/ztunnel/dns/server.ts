// Answers the DNS messages of pods: message in, message out. Sockets are the caller's.
import type { Logging } from '../../observability/index.ts'
import type { DnsAnswerer, DnsClient } from '../dataplane/types.ts'
import type { Workload } from '../model.ts'
import type { MeshFollower } from '../state/index.ts'
import { known, type ZtunnelMetrics } from '../telemetry/index.ts'
import { answer, type DnsAnswerOptions, type DnsDecision, type DnsRecord } from './answer.ts'
import { DnsError } from './errors.ts'
import type { Forwarder } from './forwarder.ts'
import {
  type Edns,
  emptyAnswer,
  encodeOpt,
  type RawMessage,
  rcodes,
  readEdns,
  readMessage,
  readRecords,
  relayAnswer,
  truncate,
} from './message.ts'
import { podSearchDomains } from './names.ts'
import { queryTypeName, questionName } from './question.ts'
import { encodeRecord } from './records.ts'

export interface DnsAnswererOptions {
  readonly state: MeshFollower
  readonly forwarder: Forwarder
  readonly metrics: ZtunnelMetrics
  readonly logging: Logging
  readonly clusterDomain: string
  /** Dedicated mode: the process's own search list. Without it each pod has that of its namespace. */
  readonly searchDomains?: readonly string[]
  readonly ipv6Enabled: boolean
  readonly preferredServiceNamespace?: string
  readonly random: () => number
  /** How long a query waits for the workload of its pod; 5,000. */
  readonly localWorkloadTimeoutMs?: number
}

const ttlSeconds = 30
const minPayload = 512

/** The answerer of every pod. Its answers never reject: what goes wrong is an answer with an error code, or none (null) to garbage. */
export function createDnsAnswerer(options: DnsAnswererOptions): DnsAnswerer {
  const log = options.logging.scope('dns', 'DNS queries of pods')

  async function respond(query: RawMessage, edns: Edns | undefined, client: DnsClient): Promise<Buffer> {
    let source: Workload
    try {
      source = await options.state.waitForLocalWorkload(client.pod, {
        timeoutMs: options.localWorkloadTimeoutMs ?? 5000,
      })
    } catch (error) {
      log.warn('the client of a DNS query is not known', { error: messageOf(error) })
      return emptyAnswer(query, rcodes.serverFailure, edns)
    }
    const name = questionName(query)
    const labels = {
      request_query_type: queryTypeName(query).toLowerCase(),
      request_protocol: client.protocol,
      source_canonical_service: known(source.canonicalName),
      source_canonical_revision: known(source.canonicalRevision),
    }
    options.metrics.dnsRequests.with(labels).inc()
    const decision: DnsDecision =
      name === undefined
        ? { kind: 'forward', reason: 'the name is not text' }
        : answer(options.state, source, { name, type: queryTypeName(query) }, answerOptions(options, source))
    const fields = {
      'src.workload': source.name,
      'src.namespace': source.namespace,
      query: queryTypeName(query),
      domain: name,
    }
    if (decision.kind === 'answer') {
      const endpoints = decision.records.filter((one) => one.type !== 'CNAME').map((one) => one.data)
      log.debug('dns', { ...fields, result: decision.reason, endpoints: endpoints.join(',') || undefined })
      return localAnswer(query, decision.records, edns)
    }
    options.metrics.dnsUpstreamRequests.with(labels).inc()
    const startedAt = performance.now()
    try {
      const { protocol, namespace } = client
      const upstream = await options.forwarder.forward(query, {
        protocol,
        ...(namespace === undefined ? {} : { namespace }),
      })
      log.debug('dns', { ...fields, result: 'forwarded' })
      return relayAnswer(query, upstream)
    } catch (error) {
      options.metrics.dnsUpstreamFailures.with(labels).inc()
      log.debug('dns', { ...fields, result: `forwarding failed (${messageOf(error)})` })
      return emptyAnswer(query, rcodes.serverFailure, edns)
    } finally {
      options.metrics.dnsUpstreamSeconds.with(labels).observe((performance.now() - startedAt) / 1000)
    }
  }

  return {
    async answer(bytes, client) {
      const query = readQuery(bytes)
      if (query === undefined) return null
      if (query.message.isResponse || query.message.questionCount !== 1 || query.isMalformed) {
        return emptyAnswer(query.message, rcodes.formatError)
      }
      const edns = query.edns === undefined ? undefined : { ...query.edns, payloadSize: payloadSize(query.edns) }
      if (query.message.opcode !== 0) return emptyAnswer(query.message, rcodes.notImplemented, edns)
      const response = await respond(query.message, edns, client)
      return client.protocol === 'tcp' ? response : truncate(query.message, response, payloadSize(query.edns))
    },
  }
}

const payloadSize = (edns: Edns | undefined): number => Math.max(minPayload, edns?.payloadSize ?? 0)

function readQuery(
  bytes: Uint8Array,
): { readonly message: RawMessage; readonly edns?: Edns; readonly isMalformed: boolean } | undefined {
  let message: RawMessage
  try {
    message = readMessage(bytes)
  } catch (error) {
    if (error instanceof DnsError) return undefined
    throw error
  }
  try {
    const edns = readEdns(readRecords(message))
    return { message, isMalformed: false, ...(edns === undefined ? {} : { edns }) }
  } catch (error) {
    if (error instanceof DnsError) return { message, isMalformed: true }
    throw error
  }
}

function answerOptions(options: DnsAnswererOptions, source: Workload): DnsAnswerOptions {
  const { clusterDomain, ipv6Enabled, preferredServiceNamespace, random } = options
  return {
    clusterDomain,
    ipv6Enabled,
    random,
    searchDomains: options.searchDomains ?? podSearchDomains(source.namespace, clusterDomain),
    ...(preferredServiceNamespace === undefined ? {} : { preferredServiceNamespace }),
  }
}

/** An authoritative answer with these records, under the question as it was asked. */
function localAnswer(query: RawMessage, records: readonly DnsRecord[], edns: Edns | undefined): Buffer {
  const head = emptyAnswer(query, rcodes.noError)
  const body = records.map((record) => encodeRecord(record, ttlSeconds))
  const answer = Buffer.concat([head, ...body, ...(edns === undefined ? [] : [encodeOpt(edns)])])
  answer.writeUInt16BE(answer.readUInt16BE(2) | 0x0400, 2)
  answer.writeUInt16BE(records.length, 6)
  answer.writeUInt16BE(edns === undefined ? 0 : 1, 10)
  return answer
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
