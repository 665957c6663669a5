// Schemas of the routes of the Gateway API.
import {
  apiGroup,
  conditions,
  duration,
  gatewayGroup,
  hostname,
  kindName,
  namespaceName,
  objectName,
  portNumber,
  preciseHostname,
  sectionName,
  sessionPersistence,
} from './gateway-schemas.ts'
import type { Schema } from './kind.ts'
import { boolean, integer, keyedList, list, object, oneOfTexts, string, unionRules, withRules } from './schema.ts'

const parentRef: Schema = object({
  group: apiGroup({ default: gatewayGroup }),
  kind: kindName({ default: 'Gateway' }),
  namespace: namespaceName,
  'name!': objectName,
  sectionName,
  port: portNumber,
})

const common = { parentRefs: list(parentRef, { maxItems: 32 }), useDefaultGateways: oneOfTexts('All', 'None') }
const hostnames: Schema = list(hostname, { maxItems: 16 })

const backendFields = {
  group: apiGroup({ default: '' }),
  kind: kindName({ default: 'Service' }),
  'name!': objectName,
  namespace: namespaceName,
  port: portNumber,
}
const weight: Schema = integer({ format: 'int32', minimum: 0, maximum: 1000000, default: 1 })
const backend = (fields: Readonly<Record<string, Schema>>): Schema =>
  withRules(object({ ...backendFields, ...fields }), [
    "self.group != '' || self.kind != 'Service' || has(self.port)",
    'Must have port for Service reference',
  ])
const backendRef: Schema = backend({ weight })

const headerName: Schema = string({ minLength: 1, maxLength: 256, pattern: "^[A-Za-z0-9!#$%&'*+\\-.^_\\x60|~]+$" })
const header: Schema = object({ 'name!': headerName, 'value!': string({ minLength: 1, maxLength: 4096 }) })
const headerFilter: Schema = object({
  set: keyedList(['name'], header, { maxItems: 16 }),
  add: keyedList(['name'], header, { maxItems: 16 }),
  remove: list(string(), { maxItems: 16, 'x-kubernetes-list-type': 'set' }),
})

const mirror: Schema = object({
  'backendRef!': backend({}),
  percent: integer({ format: 'int32', minimum: 0, maximum: 100 }),
  fraction: object({
    'numerator!': integer({ format: 'int32', minimum: 0 }),
    denominator: integer({ format: 'int32', minimum: 1, default: 100 }),
  }),
})

const path: Schema = withRules(
  object({
    'type!': oneOfTexts('ReplaceFullPath', 'ReplacePrefixMatch'),
    replaceFullPath: string({ maxLength: 1024 }),
    replacePrefixMatch: string({ maxLength: 1024 }),
  }),
  ...unionRules('path', { ReplaceFullPath: 'replaceFullPath', ReplacePrefixMatch: 'replacePrefixMatch' }),
)

const extensionRef: Schema = object({ 'group!': apiGroup(), 'kind!': kindName(), 'name!': objectName })

const cors: Schema = object({
  allowOrigins: list(string({ minLength: 1, maxLength: 253 }), { maxItems: 64, 'x-kubernetes-list-type': 'set' }),
  allowMethods: list(string(), { maxItems: 9, 'x-kubernetes-list-type': 'set' }),
  allowHeaders: list(string({ minLength: 1, maxLength: 256 }), { maxItems: 64, 'x-kubernetes-list-type': 'set' }),
  exposeHeaders: list(string({ minLength: 1, maxLength: 256 }), { maxItems: 64, 'x-kubernetes-list-type': 'set' }),
  allowCredentials: boolean(),
  maxAge: integer({ format: 'int32', minimum: 1, default: 5 }),
})

const externalAuth: Schema = object({
  'protocol!': oneOfTexts('HTTP', 'GRPC'),
  'backendRef!': backend({}),
  grpc: object({ allowedHeaders: list(string(), { maxItems: 64 }) }),
  http: object({
    path: string(),
    allowedHeaders: list(string(), { maxItems: 64 }),
    allowedResponseHeaders: list(string(), { maxItems: 64 }),
  }),
  forwardBody: object({ maxSize: integer({ minimum: 0 }) }),
})

const headerFilters = {
  RequestHeaderModifier: 'requestHeaderModifier',
  ResponseHeaderModifier: 'responseHeaderModifier',
  RequestMirror: 'requestMirror',
  ExtensionRef: 'extensionRef',
}

const httpFilter: Schema = withRules(
  object({
    'type!': oneOfTexts(
      'RequestHeaderModifier',
      'ResponseHeaderModifier',
      'RequestMirror',
      'RequestRedirect',
      'URLRewrite',
      'ExtensionRef',
      'CORS',
      'ExternalAuth',
    ),
    requestHeaderModifier: headerFilter,
    responseHeaderModifier: headerFilter,
    requestMirror: mirror,
    requestRedirect: object({
      scheme: oneOfTexts('http', 'https'),
      hostname: preciseHostname,
      path,
      port: portNumber,
      statusCode: integer({ default: 302, enum: [301, 302, 303, 307, 308] }),
    }),
    urlRewrite: object({ hostname: preciseHostname, path }),
    cors,
    externalAuth,
    extensionRef,
  }),
  ...unionRules('filter', {
    ...headerFilters,
    RequestRedirect: 'requestRedirect',
    URLRewrite: 'urlRewrite',
    CORS: 'cors',
    ExternalAuth: 'externalAuth',
  }),
)

const matchKind = (...kinds: string[]): Schema => string({ default: kinds[0], enum: kinds })
const nameMatch = (type: Schema): Schema =>
  object({ type, 'name!': headerName, 'value!': string({ minLength: 1, maxLength: 4096 }) })

const httpMatch: Schema = object({
  path: withRules(
    object(
      {
        type: string({ default: 'PathPrefix', enum: ['Exact', 'PathPrefix', 'RegularExpression'] }),
        value: string({ default: '/', maxLength: 1024 }),
      },
      { default: { type: 'PathPrefix', value: '/' } },
    ),
    [
      "!(self.type in ['Exact', 'PathPrefix']) || self.value.startsWith('/')",
      "value must be an absolute path and start with '/' when type one of ['Exact', 'PathPrefix']",
    ],
    [
      "!(self.type in ['Exact', 'PathPrefix']) || !self.value.contains('//')",
      "must not contain '//' when type one of ['Exact', 'PathPrefix']",
    ],
  ),
  headers: keyedList(['name'], nameMatch(matchKind('Exact', 'RegularExpression')), { maxItems: 16 }),
  queryParams: keyedList(['name'], nameMatch(matchKind('Exact', 'RegularExpression')), { maxItems: 16 }),
  method: oneOfTexts('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'),
})

const httpRule: Schema = withRules(
  object({
    name: sectionName,
    matches: list(httpMatch, { maxItems: 64, default: [{ path: { type: 'PathPrefix', value: '/' } }] }),
    filters: list(httpFilter, { maxItems: 16 }),
    backendRefs: list(backend({ weight, filters: list(httpFilter, { maxItems: 16 }) }), {
      maxItems: 16,
    }),
    timeouts: withRules(object({ request: duration, backendRequest: duration }), [
      "!(has(self.request) && has(self.backendRequest)) || duration(self.request) == duration('0s') || duration(self.backendRequest) <= duration(self.request)",
      'backendRequest timeout cannot be longer than request timeout',
    ]),
    retry: object({ codes: list(integer({ minimum: 400, maximum: 599 })), attempts: integer(), backoff: duration }),
    sessionPersistence,
  }),
  [
    "!has(self.backendRefs) || size(self.backendRefs) == 0 || !has(self.filters) || self.filters.all(f, f.type != 'RequestRedirect')",
    'RequestRedirect filter must not be used together with backendRefs',
  ],
)

export const httpRouteSpec: Schema = object({
  ...common,
  hostnames,
  rules: list(httpRule, {
    minItems: 1,
    maxItems: 16,
    default: [{ matches: [{ path: { type: 'PathPrefix', value: '/' } }] }],
  }),
})

const grpcFilter: Schema = withRules(
  object({
    'type!': oneOfTexts('RequestHeaderModifier', 'ResponseHeaderModifier', 'RequestMirror', 'ExtensionRef'),
    requestHeaderModifier: headerFilter,
    responseHeaderModifier: headerFilter,
    requestMirror: mirror,
    extensionRef,
  }),
  ...unionRules('filter', headerFilters),
)

const grpcRule: Schema = object({
  name: sectionName,
  matches: list(
    object({
      method: object({
        type: matchKind('Exact', 'RegularExpression'),
        service: string({ maxLength: 1024 }),
        method: string({ maxLength: 1024 }),
      }),
      headers: keyedList(['name'], nameMatch(matchKind('Exact', 'RegularExpression')), { maxItems: 16 }),
    }),
    { maxItems: 64 },
  ),
  filters: list(grpcFilter, { maxItems: 16 }),
  backendRefs: list(backend({ weight, filters: list(grpcFilter, { maxItems: 16 }) }), {
    maxItems: 16,
  }),
  sessionPersistence,
})

export const grpcRouteSpec: Schema = object({ ...common, hostnames, rules: list(grpcRule, { maxItems: 16 }) })

const l4Rules: Schema = list(
  object({ name: sectionName, 'backendRefs!': list(backendRef, { minItems: 1, maxItems: 16 }) }),
  {
    minItems: 1,
    maxItems: 16,
  },
)

export const tcpRouteSpec: Schema = object({ ...common, 'rules!': l4Rules })
export const tlsRouteSpec: Schema = object({ ...common, hostnames, 'rules!': l4Rules })

export const routeStatus: Schema = object({
  'parents!': list(
    object({
      'parentRef!': parentRef,
      'controllerName!': string({ minLength: 1, maxLength: 253 }),
      'conditions!': conditions(),
    }),
    { maxItems: 32 },
  ),
})
