// Asks the mutating and validating webhooks that configurations in the store name.
import { applyPatch, type Operation } from 'rfc6902'
import { ApiError, badRequest, forbidden, internalError } from '../errors.ts'
import type { AdmissionPlugin, AdmissionRequest, KubeObject, ObjectReader } from '../types.ts'
import { type AdmissionResponse, callWebhook, WebhookError } from './webhook-client.ts'
import { isExempt, type Webhook, wantsRequest } from './webhook-rules.ts'

interface Configuration extends KubeObject {
  readonly webhooks?: readonly Webhook[]
}

export function createWebhookAdmission(objects: () => ObjectReader): AdmissionPlugin {
  return {
    name: 'Webhooks',
    async mutate(request) {
      if (isExempt(request)) return
      const webhooks = webhooksOf(objects(), 'mutatingwebhookconfigurations')
      const changedAfter = await mutateAll(webhooks, request, objects())
      const again = webhooks.filter(
        (webhook, index) => webhook.reinvocationPolicy === 'IfNeeded' && changedAfter.some((other) => other > index),
      )
      if (again.length > 0) await mutateAll(again, request, objects())
    },
    async validate(request) {
      if (isExempt(request)) return
      const webhooks = webhooksOf(objects(), 'validatingwebhookconfigurations')
      const wanted = webhooks.filter((webhook) => wantsRequest(webhook, request, objects()))
      await Promise.all(wanted.map((webhook) => ask(webhook, request, objects())))
    },
  }
}

/** Configurations in the order of their names, webhooks in the order of the configuration. */
function webhooksOf(objects: ObjectReader, plural: string): readonly Webhook[] {
  const configurations = objects.list('admissionregistration.k8s.io', plural) as Configuration[]
  return configurations
    .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .flatMap((configuration) => configuration.webhooks ?? [])
}

/** Asks one after the other; returns the positions of the webhooks that changed the object. */
async function mutateAll(
  webhooks: readonly Webhook[],
  request: AdmissionRequest,
  objects: ObjectReader,
): Promise<readonly number[]> {
  const changed: number[] = []
  for (const [index, webhook] of webhooks.entries()) {
    if (!wantsRequest(webhook, request, objects)) continue
    const response = await ask(webhook, request, objects)
    if (response?.patch === undefined || response.patch === '') continue
    if (request.object === undefined) continue
    request.object = patched(webhook, request.object, response)
    changed.push(index)
  }
  return changed
}

function patched(webhook: Webhook, object: KubeObject, response: AdmissionResponse): KubeObject {
  if (response.patchType !== 'JSONPatch') {
    throw internalError(new Error(`admission webhook "${webhook.name}" answered with patch type ${response.patchType}`))
  }
  const result = structuredClone(object)
  const operations = JSON.parse(Buffer.from(response.patch ?? '', 'base64').toString()) as Operation[]
  const failure = applyPatch(result, operations).find((error) => error !== null)
  if (failure !== undefined) {
    throw internalError(new Error(`patch of admission webhook "${webhook.name}" does not apply: ${failure.message}`))
  }
  return result
}

/** The answer of a webhook that allows the request; undefined when it failed and failures are ignored. */
async function ask(
  webhook: Webhook,
  request: AdmissionRequest,
  objects: ObjectReader,
): Promise<AdmissionResponse | undefined> {
  if (request.dryRun && webhook.sideEffects !== 'None' && webhook.sideEffects !== 'NoneOnDryRun') {
    throw badRequest(`admission webhook "${webhook.name}" does not support dry run`)
  }
  let response: AdmissionResponse
  try {
    response = await callWebhook(webhook, request, objects)
  } catch (error) {
    if (!(error instanceof WebhookError)) throw error
    if (webhook.failurePolicy === 'Ignore') return undefined
    throw internalError(new Error(`failed calling webhook "${webhook.name}": ${error.message}`, { cause: error }))
  }
  request.warnings.push(...(response.warnings ?? []))
  if (response.allowed) return response
  throw refusal(webhook, request, response)
}

function refusal(webhook: Webhook, request: AdmissionRequest, { status }: AdmissionResponse): ApiError {
  const why = status?.message ?? status?.reason
  const text = `admission webhook "${webhook.name}" denied the request${why === undefined ? ' without explanation' : `: ${why}`}`
  const { code = 400, reason = '' } = status ?? {}
  if (code === 403 && reason === '') return forbidden(request.kind, request.name, text)
  return new ApiError(code >= 400 && code < 600 ? code : 400, reason, text)
}
