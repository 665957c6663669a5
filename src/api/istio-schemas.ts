// Parts that the schemas of several Istio kinds share.
import type { Schema } from './kind.ts'
import { atMostOneOf, boolean, integer, keyedList, list, map, number, object, oneOfTexts, string } from './schema.ts'

export const uint32: Schema = integer({ minimum: 0, maximum: 4294967295 })
export const int32: Schema = integer({ format: 'int32' })
export const texts: Schema = list(string())
export const labels: Schema = map(string())
export const flag: Schema = boolean({ nullable: true })
export const portNumber: Schema = uint32

const durationPattern =
  '^-?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|ms|s|m|h)(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|ms|s|m|h))*$'

/** A duration in any amount, zero included. */
export const anyDuration: Schema = string({ pattern: durationPattern })

/** A duration of a millisecond or more. */
export const duration: Schema = string({
  pattern: durationPattern,
  'x-kubernetes-validations': [
    { rule: "duration(self) >= duration('1ms')", message: 'must be a valid duration greater than 1ms' },
  ],
})

export const percent: Schema = object({ value: number() })

export const stringMatch: Schema = object(
  { exact: string(), prefix: string(), regex: string({ description: 'RE2 style regex-based match.' }) },
  atMostOneOf('exact', 'prefix', 'regex'),
)

const rule = (text: string, message: string) => ({ rule: text, message })

/** `workloadSelector` and `selector` with `matchLabels`. */
export const workloadSelector: Schema = object({
  matchLabels: map(
    string({
      maxLength: 63,
      'x-kubernetes-validations': [rule("!self.contains('*')", 'wildcard not allowed in label value match')],
    }),
    {
      maxProperties: 4096,
      'x-kubernetes-validations': [
        rule("self.all(key, !key.contains('*'))", 'wildcard not allowed in label key match'),
        rule('self.all(key, key.size() != 0)', 'key must not be empty'),
      ],
      description: 'One or more labels that indicate a specific set of pods on which the object applies.',
    },
  ),
})

/** The older selector with `labels`. */
export const labelsSelector: Schema = object({
  labels: map(
    string({
      maxLength: 63,
      'x-kubernetes-validations': [rule("!self.contains('*')", 'wildcard is not supported in selector')],
    }),
    { maxProperties: 256 },
  ),
})

const targetRefFields = {
  group: string({ maxLength: 253, pattern: '^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$' }),
  'kind!': string({ minLength: 1, maxLength: 63, pattern: '^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$' }),
  'name!': string({ minLength: 1, maxLength: 253 }),
  namespace: string({ maxLength: 0, description: 'Must be empty: references to other namespaces are not supported.' }),
}

export const targetRef: Schema = object(targetRefFields)
export const targetRefs: Schema = list(targetRef, { maxItems: 16 })

/** Which workloads or gateways a policy is for. */
export const attachment: Readonly<Record<string, Schema>> = { selector: workloadSelector, targetRef, targetRefs }

/** Of several ways to choose workloads, one may be used. */
export function exclusive(selector: string, refs: readonly string[]): Pick<Schema, 'x-kubernetes-validations'> {
  const used = [selector, ...refs].map((name) => `(has(self.${name}) ? 1 : 0)`).join(' + ')
  return { 'x-kubernetes-validations': [rule(`${used} <= 1`, `only one of targetRefs or ${selector} can be set`)] }
}

const conditionFields = {
  type: string(),
  status: string(),
  reason: string(),
  message: string(),
  lastTransitionTime: string({ format: 'date-time' }),
  lastProbeTime: string({ format: 'date-time' }),
  observedGeneration: { 'x-kubernetes-int-or-string': true } satisfies Schema,
}

export const status: Schema = object(
  {
    conditions: list(object(conditionFields)),
    validationMessages: list(
      object({
        documentationUrl: string(),
        level: oneOfTexts('UNKNOWN', 'ERROR', 'WARNING', 'INFO'),
        type: object({ code: string(), name: string() }),
      }),
    ),
    observedGeneration: { 'x-kubernetes-int-or-string': true },
  },
  { 'x-kubernetes-preserve-unknown-fields': true },
)

export const destination: Schema = object({
  'host!': string({ description: 'The name of a service from the service registry.' }),
  subset: string(),
  port: object({ number: portNumber }),
})

export const headerOperations: Schema = object({ set: labels, add: labels, remove: texts })

export const port: Schema = object({
  'number!': portNumber,
  'protocol!': string(),
  'name!': string(),
  targetPort: portNumber,
})

const tlsVersions = oneOfTexts('TLS_AUTO', 'TLSV1_0', 'TLSV1_1', 'TLSV1_2', 'TLSV1_3')

export const serverTls: Schema = object({
  httpsRedirect: boolean(),
  mode: oneOfTexts('PASSTHROUGH', 'SIMPLE', 'MUTUAL', 'AUTO_PASSTHROUGH', 'ISTIO_MUTUAL', 'OPTIONAL_MUTUAL'),
  serverCertificate: string(),
  privateKey: string(),
  caCertificates: string(),
  caCrl: string(),
  credentialName: string(),
  credentialNames: list(string(), { minItems: 1, maxItems: 2 }),
  caCertCredentialName: string(),
  tlsCertificates: list(object({ serverCertificate: string(), privateKey: string(), caCertificates: string() }), {
    minItems: 1,
    maxItems: 2,
  }),
  subjectAltNames: texts,
  verifyCertificateSpki: texts,
  verifyCertificateHash: texts,
  minProtocolVersion: tlsVersions,
  maxProtocolVersion: tlsVersions,
  cipherSuites: texts,
  ecdhCurves: texts,
  insecureSkipVerify: flag,
})

const tcpSettings: Schema = object({
  maxConnections: int32,
  connectTimeout: duration,
  maxConnectionDuration: duration,
  idleTimeout: anyDuration,
  tcpKeepalive: object({ probes: uint32, time: duration, interval: duration }),
})

const httpSettings: Schema = object({
  http1MaxPendingRequests: int32,
  http2MaxRequests: int32,
  maxRetries: int32,
  maxRequestsPerConnection: int32,
  maxConcurrentStreams: int32,
  idleTimeout: duration,
  h2UpgradePolicy: oneOfTexts('DEFAULT', 'DO_NOT_UPGRADE', 'UPGRADE'),
  useClientProtocol: boolean(),
  http2KeepAlive: object({ interval: duration, timeout: duration }),
})

export const connectionPool: Schema = object({ tcp: tcpSettings, http: httpSettings })

/** Conditions that are told apart by their type. */
export const conditions: Schema = keyedList(['type'], object(conditionFields))
