// The defaults of pod specs that clients of the API see.
import { isObject } from './schema-validation.ts'

type Fields = Record<string, unknown>

/** Sets a field that is absent or null. */
export function fill(target: Fields, defaults: Fields): void {
  for (const [name, value] of Object.entries(defaults)) {
    if (target[name] === undefined || target[name] === null) target[name] = structuredClone(value)
  }
}

/** The objects in a list field. */
export function objectsIn(target: Fields, name: string): Fields[] {
  const value = target[name]
  return Array.isArray(value) ? value.filter(isObject) : []
}

/** The object in a field, when there is one. */
export function objectIn(target: Fields, name: string): Fields | undefined {
  const value = target[name]
  return isObject(value) ? value : undefined
}

export function defaultPodSpec(spec: Fields): void {
  fill(spec, {
    restartPolicy: 'Always',
    dnsPolicy: 'ClusterFirst',
    schedulerName: 'default-scheduler',
    terminationGracePeriodSeconds: 30,
    securityContext: {},
  })
  if (spec.serviceAccountName !== undefined) spec.serviceAccount = spec.serviceAccountName
  else if (spec.serviceAccount !== undefined) spec.serviceAccountName = spec.serviceAccount
  for (const name of ['containers', 'initContainers', 'ephemeralContainers']) {
    for (const container of objectsIn(spec, name)) defaultContainer(container, spec.hostNetwork === true)
  }
  for (const volume of objectsIn(spec, 'volumes')) defaultVolume(volume)
}

function defaultContainer(container: Fields, hostNetwork: boolean): void {
  fill(container, {
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    imagePullPolicy: pullPolicy(container.image),
    resources: {},
  })
  for (const port of objectsIn(container, 'ports')) {
    fill(port, { protocol: 'TCP' })
    if (hostNetwork) fill(port, { hostPort: port.containerPort })
  }
  for (const name of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    const probe = objectIn(container, name)
    if (probe !== undefined) defaultProbe(probe)
  }
  const lifecycle = objectIn(container, 'lifecycle') ?? {}
  for (const name of ['postStart', 'preStop']) {
    const action = objectIn(objectIn(lifecycle, name) ?? {}, 'httpGet')
    if (action !== undefined) fill(action, { path: '/', scheme: 'HTTP' })
  }
  for (const variable of objectsIn(container, 'env')) {
    const fieldRef = objectIn(objectIn(variable, 'valueFrom') ?? {}, 'fieldRef')
    if (fieldRef !== undefined) fill(fieldRef, { apiVersion: 'v1' })
  }
  defaultRequests(objectIn(container, 'resources') ?? {})
}

/** A limit without a request asks for the limit. */
function defaultRequests(resources: Fields): void {
  const limits = objectIn(resources, 'limits')
  if (limits === undefined) return
  const requests = objectIn(resources, 'requests') ?? {}
  fill(requests, limits)
  resources.requests = requests
}

function pullPolicy(image: unknown): string {
  const text = typeof image === 'string' ? image : ''
  const tag = /:([^/:@]+)$/.exec(text)?.[1]
  return text.includes('@') || (tag !== undefined && tag !== 'latest') ? 'IfNotPresent' : 'Always'
}

function defaultProbe(probe: Fields): void {
  fill(probe, { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 })
  const httpGet = objectIn(probe, 'httpGet')
  if (httpGet !== undefined) fill(httpGet, { path: '/', scheme: 'HTTP' })
  const grpc = objectIn(probe, 'grpc')
  if (grpc !== undefined) fill(grpc, { service: '' })
}

function defaultVolume(volume: Fields): void {
  if (Object.keys(volume).length === 1) volume.emptyDir = {}
  for (const name of ['configMap', 'secret', 'downwardAPI', 'projected']) {
    const source = objectIn(volume, name)
    if (source === undefined) continue
    fill(source, { defaultMode: 0o644 })
    for (const item of [...objectsIn(source, 'items'), ...objectsIn(source, 'sources')]) defaultProjection(item)
  }
  const hostPath = objectIn(volume, 'hostPath')
  if (hostPath !== undefined) fill(hostPath, { type: '' })
}

function defaultProjection(item: Fields): void {
  const token = objectIn(item, 'serviceAccountToken')
  if (token !== undefined) fill(token, { expirationSeconds: 3600 })
  for (const file of [item, ...objectsIn(objectIn(item, 'downwardAPI') ?? {}, 'items')]) {
    const fieldRef = objectIn(file, 'fieldRef')
    if (fieldRef !== undefined) fill(fieldRef, { apiVersion: 'v1' })
  }
}
