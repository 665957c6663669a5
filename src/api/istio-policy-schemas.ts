// Schemas of the security, telemetry and extension kinds.
import { isSet, trafficMode } from './istio-network-schemas.ts'
import { attachment, duration, exclusive, int32, targetRefs, workloadSelector } from './istio-schemas.ts'
import type { Schema } from './kind.ts'
import { anyObject, atMostOneOf, boolean, integer, list, map, number, object, oneOfTexts, string } from './schema.ts'

const mtls: Schema = object({ mode: oneOfTexts('UNSET', 'DISABLE', 'PERMISSIVE', 'STRICT') })

export const peerAuthentication: Schema = object({ selector: workloadSelector, mtls, portLevelMtls: map(mtls) })

const account = string({ minLength: 1, maxLength: 320 })
const values = list(string())
const accounts = list(account, { maxItems: 16 })

const source: Schema = object({
  principals: values,
  notPrincipals: values,
  requestPrincipals: values,
  notRequestPrincipals: values,
  namespaces: values,
  notNamespaces: values,
  trustDomains: values,
  notTrustDomains: values,
  serviceAccounts: accounts,
  notServiceAccounts: accounts,
  ipBlocks: values,
  notIpBlocks: values,
  remoteIpBlocks: values,
  notRemoteIpBlocks: values,
})

const operation: Schema = object({
  hosts: values,
  notHosts: values,
  ports: values,
  notPorts: values,
  methods: values,
  notMethods: values,
  paths: values,
  notPaths: values,
})

export const authorizationPolicy: Schema = object(
  {
    ...attachment,
    action: oneOfTexts('ALLOW', 'DENY', 'AUDIT', 'CUSTOM'),
    provider: object({ name: string() }),
    rules: list(
      object({
        from: list(object({ source }), { maxItems: 512 }),
        to: list(object({ operation }), { maxItems: 512 }),
        when: list(object({ 'key!': string(), values, notValues: values })),
      }),
      { maxItems: 512 },
    ),
  },
  exclusive('selector', ['targetRef', 'targetRefs']),
)

const jwtRule: Schema = object({
  issuer: string(),
  audiences: list(string({ minLength: 1 })),
  jwksUri: string({ minLength: 1, maxLength: 2048 }),
  jwks_uri: string({ minLength: 1, maxLength: 2048 }),
  jwks: string(),
  fromHeaders: list(object({ 'name!': string({ minLength: 1 }), prefix: string() })),
  fromParams: list(string({ minLength: 1 })),
  fromCookies: list(string({ minLength: 1 })),
  outputPayloadToHeader: string(),
  outputClaimToHeaders: list(
    object({ 'header!': string({ minLength: 1, pattern: '^[-_A-Za-z0-9]+$' }), 'claim!': string({ minLength: 1 }) }),
  ),
  forwardOriginalToken: boolean(),
  timeout: duration,
  spaceDelimitedClaims: list(string({ minLength: 1 }), { maxItems: 64 }),
  presence: oneOfTexts('OPTIONAL', 'REQUIRED'),
})

export const requestAuthentication: Schema = object(
  { ...attachment, jwtRules: list(jwtRule, { maxItems: 4096 }) },
  exclusive('selector', ['targetRef', 'targetRefs']),
)

const providers: Schema = list(object({ 'name!': string({ minLength: 1 }) }))
const mode = oneOfTexts('CLIENT_AND_SERVER', 'CLIENT', 'SERVER')

const customTag: Schema = object(
  {
    literal: object({ 'value!': string({ minLength: 1 }) }),
    environment: object({ 'name!': string({ minLength: 1 }), defaultValue: string() }),
    header: object({ 'name!': string({ minLength: 1 }), defaultValue: string() }),
    formatter: object({ 'value!': string({ minLength: 1 }) }),
  },
  atMostOneOf('literal', 'environment', 'header', 'formatter'),
)

const metricNames = oneOfTexts(
  'ALL_METRICS',
  'REQUEST_COUNT',
  'REQUEST_DURATION',
  'REQUEST_SIZE',
  'RESPONSE_SIZE',
  'TCP_OPENED_CONNECTIONS',
  'TCP_CLOSED_CONNECTIONS',
  'TCP_SENT_BYTES',
  'TCP_RECEIVED_BYTES',
  'GRPC_REQUEST_MESSAGES',
  'GRPC_RESPONSE_MESSAGES',
)

export const telemetry: Schema = object(
  {
    ...attachment,
    tracing: list(
      object({
        match: object({ mode }),
        providers,
        randomSamplingPercentage: number({ minimum: 0, maximum: 100, nullable: true }),
        disableSpanReporting: isSet,
        disableContextPropagation: isSet,
        customTags: map(customTag),
        enableIstioTags: isSet,
        useRequestIdForTraceSampling: isSet,
      }),
    ),
    metrics: list(
      object({
        providers,
        reportingInterval: duration,
        overrides: list(
          object({
            match: object(
              { metric: metricNames, customMetric: string({ minLength: 1 }), mode },
              atMostOneOf('metric', 'customMetric'),
            ),
            disabled: isSet,
            tagOverrides: map(object({ operation: oneOfTexts('UPSERT', 'REMOVE'), value: string() })),
          }),
        ),
      }),
    ),
    accessLogging: list(
      object({ match: object({ mode }), providers, disabled: isSet, filter: object({ expression: string() }) }),
    ),
  },
  exclusive('selector', ['targetRef', 'targetRefs']),
)

const pluginFields = {
  url: string({ minLength: 1 }),
  sha256: string({ pattern: '(^$|^[a-f0-9]{64}$)' }),
  imagePullPolicy: oneOfTexts('UNSPECIFIED_POLICY', 'IfNotPresent', 'Always'),
  imagePullSecret: string({ minLength: 1, maxLength: 253 }),
  verificationKey: string(),
  pluginConfig: anyObject(),
  pluginName: string({ minLength: 1, maxLength: 256 }),
  failStrategy: oneOfTexts('FAIL_CLOSE', 'FAIL_OPEN', 'FAIL_RELOAD'),
  vmConfig: object({
    env: list(
      object({
        'name!': string({ minLength: 1, maxLength: 256 }),
        valueFrom: oneOfTexts('INLINE', 'HOST'),
        value: string({ maxLength: 2048 }),
      }),
      { maxItems: 256 },
    ),
  }),
  type: oneOfTexts('UNSPECIFIED_PLUGIN_TYPE', 'HTTP', 'NETWORK'),
}

const { url, ...optionalPluginFields } = pluginFields

const match: Schema = list(
  object({
    mode: trafficMode('UNDEFINED'),
    ports: list(object({ 'number!': integer({ minimum: 1, maximum: 65535 }) })),
  }),
)

const priority: Schema = { ...int32, nullable: true }

export const wasmPlugin: Schema = object(
  {
    ...attachment,
    'url!': url,
    ...optionalPluginFields,
    phase: oneOfTexts('UNSPECIFIED_PHASE', 'AUTHN', 'AUTHZ', 'STATS'),
    priority,
    match,
  },
  exclusive('selector', ['targetRef', 'targetRefs']),
)

export const trafficExtension: Schema = object(
  {
    selector: workloadSelector,
    targetRefs,
    phase: oneOfTexts('UNSPECIFIED', 'AUTHN', 'AUTHZ', 'STATS'),
    priority,
    match,
    wasm: object({ 'url!': url, ...optionalPluginFields }),
    lua: object({ 'inlineCode!': string({ minLength: 1, maxLength: 65536 }) }),
  },
  { oneOf: [{ required: ['wasm'] }, { required: ['lua'] }], ...exclusive('selector', ['targetRefs']) },
)
