// Sends an AdmissionReview to a webhook and reads its answer.
import { randomUUID } from 'node:crypto'
import { request as httpsRequest } from 'node:https'
import type { AdmissionRequest, KubeObject, ObjectReader } from '../types.ts'
import type { Webhook } from './webhook-rules.ts'

export interface AdmissionResponse {
  readonly uid: string
  readonly allowed: boolean
  readonly status?: { readonly message?: string; readonly reason?: string; readonly code?: number }
  readonly patch?: string
  readonly patchType?: string
  readonly warnings?: readonly string[]
}

/** A webhook that could not be asked or did not answer as it should; the failure policy decides what follows. */
export class WebhookError extends Error {
  readonly code = 'WEBHOOK_FAILED'
}

interface Target {
  /** Address to connect to. */
  readonly host: string
  readonly port: number
  readonly path: string
  /** Name that the certificate must carry. */
  readonly serverName: string
}

const answerLimit = 16 * 1024 * 1024

export async function callWebhook(
  webhook: Webhook,
  request: AdmissionRequest,
  objects: ObjectReader,
): Promise<AdmissionResponse> {
  const version = webhook.admissionReviewVersions?.find((name) => name === 'v1' || name === 'v1beta1')
  if (version === undefined) throw new WebhookError('webhook accepts neither v1 nor v1beta1 of AdmissionReview')
  const uid = randomUUID()
  const review = { apiVersion: `admission.k8s.io/${version}`, kind: 'AdmissionReview', request: reviewOf(uid, request) }
  const target = targetOf(webhook, objects)
  const answer = await post(target, webhook, JSON.stringify(review))
  const { response } = answer as { response?: AdmissionResponse }
  if (response === undefined) throw new WebhookError('the answer has no response')
  if (response.uid !== uid) throw new WebhookError(`the answer is for request "${response.uid}", expected "${uid}"`)
  return response
}

function reviewOf(uid: string, request: AdmissionRequest): Record<string, unknown> {
  const { kind, user } = request
  const resource = { group: kind.group, version: kind.version, resource: kind.plural }
  const gvk = { group: kind.group, version: kind.version, kind: kind.kind }
  const inVersion = (object: KubeObject | undefined): KubeObject | null => object ?? null
  return {
    uid,
    kind: gvk,
    resource,
    ...(request.subresource === undefined
      ? {}
      : { subResource: request.subresource, requestSubResource: request.subresource }),
    requestKind: gvk,
    requestResource: resource,
    name: request.name,
    ...(request.namespace === undefined ? {} : { namespace: request.namespace }),
    operation: request.operation,
    userInfo: {
      username: user.name,
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      groups: user.groups,
      ...(user.extra === undefined ? {} : { extra: user.extra }),
    },
    object: inVersion(request.object),
    oldObject: inVersion(request.oldObject),
    dryRun: request.dryRun,
    options: Object.keys(request.options).length === 0 ? null : request.options,
  }
}

/** A service is reached at its first ready endpoint: the server itself may run where cluster addresses are not routed. */
function targetOf({ clientConfig, name }: Webhook, objects: ObjectReader): Target {
  const { url, service } = clientConfig
  if (url !== undefined) {
    const parsed = new URL(url)
    if (parsed.protocol !== 'https:') throw new WebhookError(`webhook ${name}: only https is allowed`)
    const host = parsed.hostname.replace(/^\[|\]$/g, '')
    return { host, port: Number(parsed.port || 443), path: `${parsed.pathname}${parsed.search}`, serverName: host }
  }
  if (service === undefined) throw new WebhookError(`webhook ${name} has neither url nor service`)
  return {
    ...endpointOf(service, objects),
    path: service.path ?? '/',
    serverName: `${service.name}.${service.namespace}.svc`,
  }
}

interface EndpointSlice extends KubeObject {
  readonly endpoints?: readonly {
    readonly addresses: readonly string[]
    readonly conditions?: { readonly ready?: boolean }
  }[]
  readonly ports?: readonly { readonly name?: string; readonly port?: number }[]
}

function endpointOf(
  { namespace, name, port = 443 }: NonNullable<Webhook['clientConfig']['service']>,
  objects: ObjectReader,
): { host: string; port: number } {
  const service = objects.get('', 'services', { namespace, name })
  if (service === undefined) throw new WebhookError(`service "${namespace}/${name}" not found`)
  const { ports = [] } = (service.spec ?? {}) as { ports?: { name?: string; port: number }[] }
  const wanted = ports.find((candidate) => candidate.port === port)
  if (wanted === undefined) throw new WebhookError(`service "${namespace}/${name}" has no port ${port}`)
  const slices = objects.list('discovery.k8s.io', 'endpointslices', namespace) as EndpointSlice[]
  for (const slice of slices) {
    if (slice.metadata.labels?.['kubernetes.io/service-name'] !== name) continue
    const target = slice.ports?.find((candidate) => (candidate.name ?? '') === (wanted.name ?? ''))?.port
    const ready = slice.endpoints?.find((endpoint) => endpoint.conditions?.ready !== false)?.addresses[0]
    if (target !== undefined && ready !== undefined) return { host: ready, port: target }
  }
  throw new WebhookError(`no endpoints available for service "${name}"`)
}

function post(target: Target, webhook: Webhook, body: string): Promise<unknown> {
  const seconds = webhook.timeoutSeconds ?? 10
  const signal = AbortSignal.timeout(seconds * 1000)
  const bundle = webhook.clientConfig.caBundle
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown): void => {
      const why = signal.aborted
        ? `no answer within ${seconds} seconds`
        : cause instanceof Error
          ? cause.message
          : String(cause)
      reject(new WebhookError(why, { cause }))
    }
    const request = httpsRequest(
      {
        host: target.host,
        port: target.port,
        path: target.path,
        method: 'POST',
        servername: /^[\d.]+$|:/.test(target.serverName) ? '' : target.serverName,
        headers: {
          host: target.serverName,
          'content-type': 'application/json',
          accept: 'application/json',
          'content-length': Buffer.byteLength(body),
        },
        ...(bundle === undefined || bundle === '' ? {} : { ca: Buffer.from(bundle, 'base64') }),
        agent: false,
        signal,
      },
      (response) => {
        const parts: Buffer[] = []
        let size = 0
        response.on('data', (part: Buffer) => {
          size += part.length
          if (size > answerLimit) request.destroy(new Error('the answer is too long'))
          else parts.push(part)
        })
        response.on('error', fail)
        response.on('end', () => {
          const text = Buffer.concat(parts).toString()
          if (response.statusCode !== 200) fail(new Error(`status ${response.statusCode}: ${text.slice(0, 200)}`))
          else {
            try {
              resolve(JSON.parse(text))
            } catch (error) {
              fail(error)
            }
          }
        })
      },
    )
    request.on('error', fail)
    request.end(body)
  })
}
