// Parts that the schemas of several Gateway API kinds share, and those of GatewayClass, Gateway and ListenerSet.
import type { Schema } from './kind.ts'
import { anyObject, integer, keyedList, list, map, object, oneOfTexts, string, withRules } from './schema.ts'

export const gatewayGroup = 'gateway.networking.k8s.io'

const groupPattern = '^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'
const kindPattern = '^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$'
const subdomain = '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'

export const apiGroup = (options: { default?: string } = {}): Schema =>
  string({ maxLength: 253, pattern: groupPattern, ...options })
export const kindName = (options: { default?: string } = {}): Schema =>
  string({ minLength: 1, maxLength: 63, pattern: kindPattern, ...options })
export const objectName: Schema = string({ minLength: 1, maxLength: 253 })
export const namespaceName: Schema = string({ minLength: 1, maxLength: 63, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' })
export const sectionName: Schema = string({ minLength: 1, maxLength: 253, pattern: `^${subdomain}$` })
export const portNumber: Schema = integer({ format: 'int32', minimum: 1, maximum: 65535 })
/** A host name, perhaps with a wildcard as its first label. */
export const hostname: Schema = string({ minLength: 1, maxLength: 253, pattern: `^(\\*\\.)?${subdomain}$` })
export const preciseHostname: Schema = string({ minLength: 1, maxLength: 253, pattern: `^${subdomain}$` })
export const duration: Schema = string({ pattern: '^([0-9]{1,5}(h|m|s|ms)){1,4}$' })

const condition: Schema = object({
  'type!': string({ maxLength: 316 }),
  'status!': oneOfTexts('True', 'False', 'Unknown'),
  'reason!': string({ minLength: 1, maxLength: 1024 }),
  'message!': string({ maxLength: 32768 }),
  'lastTransitionTime!': string({ format: 'date-time' }),
  observedGeneration: integer({ format: 'int64', minimum: 0 }),
})

export const conditions = (initial: readonly string[] = []): Schema =>
  keyedList(['type'], condition, {
    maxItems: 8,
    ...(initial.length === 0
      ? {}
      : {
          default: initial.map((type) => ({
            type,
            status: 'Unknown',
            reason: 'Pending',
            message: 'Waiting for controller',
            lastTransitionTime: '1970-01-01T00:00:00Z',
          })),
        }),
  })

const labelValue = string({ maxLength: 63 })
const parametersRef = { 'group!': apiGroup(), 'kind!': kindName(), 'name!': objectName }

export const labelSelector: Schema = object(
  {
    matchLabels: map(string()),
    matchExpressions: list(
      object({
        'key!': string(),
        'operator!': string(),
        values: list(string(), { 'x-kubernetes-list-type': 'atomic' }),
      }),
      { 'x-kubernetes-list-type': 'atomic' },
    ),
  },
  { 'x-kubernetes-map-type': 'atomic' },
)

/** A reference to a Secret or another object that holds a certificate. */
export const secretRef: Schema = object({
  group: apiGroup({ default: '' }),
  kind: kindName({ default: 'Secret' }),
  'name!': objectName,
  namespace: namespaceName,
})

const objectRef: Schema = object({
  'group!': apiGroup(),
  'kind!': kindName(),
  'name!': objectName,
  namespace: namespaceName,
})

export const gatewayClassSpec: Schema = object({
  'controllerName!': string({
    minLength: 1,
    maxLength: 253,
    pattern: `^${subdomain}\\/[A-Za-z0-9\\/\\-._~%!$&'()*+,;=:]+$`,
  }),
  description: string({ maxLength: 64 }),
  parametersRef: object({ ...parametersRef, namespace: namespaceName }),
})

export const gatewayClassStatus: Schema = object({
  conditions: conditions(['Accepted']),
  supportedFeatures: keyedList(['name'], object({ 'name!': string() }), { maxItems: 64 }),
})

const routeKind: Schema = object({ group: apiGroup({ default: gatewayGroup }), 'kind!': kindName() })

const frontendValidation: Schema = object({
  validation: object({
    'caCertificateRefs!': list(objectRef, { minItems: 1, maxItems: 8 }),
    mode: string({ default: 'AllowValidOnly', enum: ['AllowValidOnly', 'AllowInsecureFallback'] }),
  }),
})

const listenerTls: Schema = withRules(
  object({
    mode: string({ default: 'Terminate', enum: ['Terminate', 'Passthrough'] }),
    certificateRefs: list(secretRef, { maxItems: 64, 'x-kubernetes-list-type': 'atomic' }),
    options: map(string({ maxLength: 4096 }), { maxProperties: 16 }),
    frontendValidation: object({ caCertificateRefs: list(objectRef, { maxItems: 8 }) }),
  }),
  [
    "self.mode != 'Terminate' || (has(self.certificateRefs) && size(self.certificateRefs) > 0) || (has(self.options) && size(self.options) > 0)",
    'certificateRefs or options must be specified when mode is Terminate',
  ],
)

const allowedRoutes: Schema = object(
  {
    kinds: list(routeKind, { maxItems: 8, 'x-kubernetes-list-type': 'atomic' }),
    namespaces: object(
      { from: string({ default: 'Same', enum: ['All', 'Selector', 'Same', 'None'] }), selector: labelSelector },
      { default: { from: 'Same' } },
    ),
  },
  { default: { namespaces: { from: 'Same' } } },
)

const protocol: Schema = string({
  minLength: 1,
  maxLength: 255,
  pattern:
    '^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\\/[A-Za-z0-9]+$',
})

const listenerFields = {
  'name!': sectionName,
  hostname,
  'protocol!': protocol,
  tls: listenerTls,
  allowedRoutes,
}

const address: Schema = object({
  type: string({ default: 'IPAddress', minLength: 1, maxLength: 253 }),
  value: string({ maxLength: 253 }),
})

const listenerRules = [
  [
    "self.all(l, !(l.protocol in ['HTTP', 'TCP', 'UDP']) || !has(l.tls))",
    "tls must not be specified for protocols ['HTTP', 'TCP', 'UDP']",
  ],
  [
    "self.all(l, l.protocol != 'HTTPS' || !has(l.tls) || l.tls.mode == 'Terminate')",
    'tls mode must be Terminate for protocol HTTPS',
  ],
  [
    "self.all(l, !(l.protocol in ['TCP', 'UDP']) || !has(l.hostname))",
    "hostname must not be specified for protocols ['TCP', 'UDP']",
  ],
] as const

const uniqueListeners = [
  'self.all(l1, self.exists_one(l2, l1.port == l2.port && l1.protocol == l2.protocol && (has(l1.hostname) ? has(l2.hostname) && l1.hostname == l2.hostname : !has(l2.hostname))))',
  'Combination of port, protocol and hostname must be unique for each listener',
] as const

export const gatewaySpec: Schema = object({
  'gatewayClassName!': objectName,
  'listeners!': withRules(
    keyedList(['name'], object({ ...listenerFields, 'port!': portNumber }), { minItems: 1, maxItems: 64 }),
    ...listenerRules,
    uniqueListeners,
  ),
  addresses: list(address, { maxItems: 16, 'x-kubernetes-list-type': 'atomic' }),
  infrastructure: object({
    labels: map(labelValue, { maxProperties: 8 }),
    annotations: map(string({ maxLength: 4096 }), { maxProperties: 8 }),
    parametersRef: object(parametersRef),
  }),
  allowedListeners: object({
    namespaces: object(
      { from: string({ default: 'None', enum: ['All', 'Selector', 'Same', 'None'] }), selector: labelSelector },
      { default: { from: 'None' } },
    ),
  }),
  tls: object({
    backend: object({ clientCertificateRef: secretRef }),
    frontend: object({
      'default!': frontendValidation,
      perPort: keyedList(['port'], object({ 'port!': portNumber, 'tls!': frontendValidation }), { maxItems: 64 }),
    }),
  }),
  defaultScope: oneOfTexts('All', 'None'),
})

const listenerStatus: Schema = object({
  'name!': sectionName,
  supportedKinds: list(routeKind, { maxItems: 8 }),
  'attachedRoutes!': integer({ format: 'int32' }),
  'conditions!': conditions(),
  port: integer({ format: 'int32' }),
})

export const gatewayStatus: Schema = object({
  addresses: list(
    object({ type: string({ default: 'IPAddress' }), 'value!': string({ minLength: 1, maxLength: 253 }) }),
    { maxItems: 16 },
  ),
  conditions: conditions(['Accepted', 'Programmed']),
  listeners: keyedList(['name'], listenerStatus, { maxItems: 64 }),
  attachedListenerSets: integer({ format: 'int32' }),
})

export const listenerSetSpec: Schema = object({
  'parentRef!': object({
    group: apiGroup({ default: gatewayGroup }),
    kind: kindName({ default: 'Gateway' }),
    'name!': objectName,
    namespace: namespaceName,
  }),
  'listeners!': keyedList(
    ['name'],
    object({ ...listenerFields, port: integer({ format: 'int32', minimum: 0, maximum: 65535 }) }),
    {
      minItems: 1,
      maxItems: 64,
    },
  ),
})

export const listenerSetStatus: Schema = object({
  conditions: conditions(['Accepted', 'Programmed']),
  listeners: keyedList(['name'], listenerStatus, { maxItems: 64 }),
})

export const referenceGrantSpec: Schema = object({
  'from!': list(object({ 'group!': apiGroup(), 'kind!': kindName(), 'namespace!': namespaceName }), {
    minItems: 1,
    maxItems: 16,
  }),
  'to!': list(object({ 'group!': apiGroup(), 'kind!': kindName(), name: objectName }), { minItems: 1, maxItems: 16 }),
})

const policyTarget: Schema = object({ 'group!': apiGroup(), 'kind!': kindName(), 'name!': objectName, sectionName })

export const policyStatus: Schema = object({
  'ancestors!': list(
    object({
      'ancestorRef!': object({
        group: apiGroup({ default: gatewayGroup }),
        kind: kindName({ default: 'Gateway' }),
        namespace: namespaceName,
        'name!': objectName,
        sectionName,
        port: portNumber,
      }),
      'controllerName!': string({ minLength: 1, maxLength: 253 }),
      'conditions!': conditions(),
    }),
    { maxItems: 16 },
  ),
})

export const backendTlsPolicySpec: Schema = object({
  'targetRefs!': list(policyTarget, { minItems: 1, maxItems: 16 }),
  'validation!': withRules(
    object({
      caCertificateRefs: list(object({ 'group!': apiGroup(), 'kind!': kindName(), 'name!': objectName }), {
        maxItems: 8,
      }),
      wellKnownCACertificates: string({ minLength: 1, maxLength: 253 }),
      'hostname!': preciseHostname,
      subjectAltNames: list(
        object({ 'type!': oneOfTexts('Hostname', 'URI'), hostname, uri: string({ minLength: 1, maxLength: 253 }) }),
        { maxItems: 5 },
      ),
    }),
    [
      'has(self.caCertificateRefs) != has(self.wellKnownCACertificates)',
      'must specify either CACertificateRefs or WellKnownCACertificates',
    ],
  ),
  options: map(string({ maxLength: 4096 }), { maxProperties: 16 }),
})

export const sessionPersistence: Schema = object({
  sessionName: string({ maxLength: 128 }),
  type: string({ default: 'Cookie', enum: ['Cookie', 'Header'] }),
  absoluteTimeout: duration,
  idleTimeout: duration,
  cookieConfig: object({ lifetimeType: string({ default: 'Session', enum: ['Permanent', 'Session'] }) }),
})

export const backendTrafficPolicySpec: Schema = object({
  'targetRefs!': list(object({ 'group!': apiGroup(), 'kind!': kindName(), 'name!': objectName }), {
    minItems: 1,
    maxItems: 16,
  }),
  retryConstraint: object({
    budget: object({
      percent: integer({ minimum: 0, maximum: 100, default: 20 }),
      interval: { ...duration, default: '10s' },
    }),
    minRetryRate: object({ count: integer({ minimum: 1, maximum: 1000000 }), interval: duration }),
  }),
  sessionPersistence,
})

/** Backends outside the cluster, as the experimental kind describes them. */
export const backendSpec: Schema = anyObject()
