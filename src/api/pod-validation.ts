// Validation of pods and pod templates beyond their schema.
import { duplicate, forbiddenField, invalidValue, isSame, notFoundField, notSupported, required } from './causes.ts'
import type { Cause } from './kind.ts'
import { dnsLabelFault, dnsSubdomainFault, labelKeyFault, labelValueFault, portNameFault } from './names.ts'
import { objectIn, objectsIn } from './pod-defaults.ts'

type Fields = Record<string, unknown>

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

export function portFault(value: unknown): string | undefined {
  const inRange = Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 65535
  return inRange ? undefined : 'must be between 1 and 65535, inclusive'
}

/** What is wrong with a pod spec at `path`. */
export function validatePodSpec(
  spec: Fields,
  path: string,
  restartPolicies = ['Always', 'OnFailure', 'Never'],
): Cause[] {
  const causes: Cause[] = []
  const containers = objectsIn(spec, 'containers')
  if (containers.length === 0) causes.push(required(`${path}.containers`))
  if (!restartPolicies.includes(textOf(spec.restartPolicy))) {
    causes.push(notSupported(`${path}.restartPolicy`, spec.restartPolicy, restartPolicies))
  }
  const dnsPolicies = ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None']
  if (!dnsPolicies.includes(textOf(spec.dnsPolicy))) {
    causes.push(notSupported(`${path}.dnsPolicy`, spec.dnsPolicy, dnsPolicies))
  }
  const volumes = new Set<string>()
  objectsIn(spec, 'volumes').forEach((volume, index) => {
    const name = textOf(volume.name)
    causes.push(...nameCauses(name, `${path}.volumes[${index}].name`, volumes))
    const sources = Object.keys(volume).filter((key) => key !== 'name' && volume[key] !== undefined)
    if (sources.length > 1) {
      const source = `${path}.volumes[${index}].${sources[1]}`
      causes.push(forbiddenField(source, 'may not specify more than 1 volume type'))
    }
  })
  const names = new Set<string>()
  const init = objectsIn(spec, 'initContainers')
  containers.forEach((container, index) => {
    causes.push(...validateContainer(container, `${path}.containers[${index}]`, names, volumes, false))
  })
  init.forEach((container, index) => {
    causes.push(...validateContainer(container, `${path}.initContainers[${index}]`, names, volumes, true))
  })
  const account = textOf(spec.serviceAccountName)
  const accountFault = account === '' ? undefined : dnsSubdomainFault(account)
  if (accountFault !== undefined) causes.push(invalidValue(`${path}.serviceAccountName`, account, accountFault))
  for (const [name, value] of Object.entries(objectIn(spec, 'nodeSelector') ?? {})) {
    const fault = labelKeyFault(name) ?? labelValueFault(textOf(value))
    if (fault !== undefined) causes.push(invalidValue(`${path}.nodeSelector`, name, fault))
  }
  const grace = spec.terminationGracePeriodSeconds
  if (typeof grace === 'number' && grace < 0) {
    causes.push(invalidValue(`${path}.terminationGracePeriodSeconds`, grace, 'must be greater than or equal to 0'))
  }
  return causes
}

function nameCauses(name: string, path: string, seen: Set<string>): Cause[] {
  if (name === '') return [required(path)]
  const fault = dnsLabelFault(name)
  const causes = fault === undefined ? [] : [invalidValue(path, name, fault)]
  if (seen.has(name)) causes.push(duplicate(path, name))
  seen.add(name)
  return causes
}

function validateContainer(
  container: Fields,
  path: string,
  names: Set<string>,
  volumes: ReadonlySet<string>,
  isInit: boolean,
): Cause[] {
  const causes = nameCauses(textOf(container.name), `${path}.name`, names)
  if (textOf(container.image) === '') causes.push(required(`${path}.image`))
  const pullPolicies = ['Always', 'IfNotPresent', 'Never']
  if (!pullPolicies.includes(textOf(container.imagePullPolicy))) {
    causes.push(notSupported(`${path}.imagePullPolicy`, container.imagePullPolicy, pullPolicies))
  }
  const portNames = new Set<string>()
  objectsIn(container, 'ports').forEach((port, index) => {
    const at = `${path}.ports[${index}]`
    const fault = portFault(port.containerPort)
    if (fault !== undefined) causes.push(invalidValue(`${at}.containerPort`, port.containerPort, fault))
    if (!['TCP', 'UDP', 'SCTP'].includes(textOf(port.protocol))) {
      causes.push(notSupported(`${at}.protocol`, port.protocol, ['SCTP', 'TCP', 'UDP']))
    }
    const name = textOf(port.name)
    if (name === '') return
    const nameFault = portNameFault(name)
    if (nameFault !== undefined) causes.push(invalidValue(`${at}.name`, name, nameFault))
    if (portNames.has(name)) causes.push(duplicate(`${at}.name`, name))
    portNames.add(name)
  })
  objectsIn(container, 'env').forEach((variable, index) => {
    if (textOf(variable.name) === '') causes.push(required(`${path}.env[${index}].name`))
    if (variable.valueFrom !== undefined && textOf(variable.value) !== '') {
      const why = 'may not be specified when `value` is not empty'
      causes.push(invalidValue(`${path}.env[${index}].valueFrom`, '', why))
    }
  })
  const mountPaths = new Set<string>()
  objectsIn(container, 'volumeMounts').forEach((mount, index) => {
    const at = `${path}.volumeMounts[${index}]`
    const [name, mountPath] = [textOf(mount.name), textOf(mount.mountPath)]
    if (!volumes.has(name)) causes.push(notFoundField(`${at}.name`, name))
    if (mountPath === '') causes.push(required(`${at}.mountPath`))
    if (mountPaths.has(mountPath)) causes.push(invalidValue(`${at}.mountPath`, mountPath, 'must be unique'))
    mountPaths.add(mountPath)
  })
  const isSidecar = isInit && container.restartPolicy === 'Always'
  for (const name of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    const probe = objectIn(container, name)
    if (probe === undefined) continue
    if (isInit && !isSidecar)
      causes.push(forbiddenField(`${path}.${name}`, 'may not be set for init containers without restartPolicy=Always'))
    causes.push(...validateProbe(probe, `${path}.${name}`))
  }
  return causes
}

function validateProbe(probe: Fields, path: string): Cause[] {
  const causes: Cause[] = []
  const handlers = ['exec', 'httpGet', 'tcpSocket', 'grpc'].filter((name) => objectIn(probe, name) !== undefined)
  if (handlers.length === 0) causes.push(required(path, 'must specify a handler type'))
  const [, second] = handlers
  if (second !== undefined) {
    causes.push(forbiddenField(`${path}.${second}`, 'may not specify more than 1 handler type'))
  }
  for (const name of ['httpGet', 'tcpSocket']) {
    const handler = objectIn(probe, name)
    const port = handler?.port
    if (handler === undefined) continue
    const fault = typeof port === 'string' ? portNameFault(port) : portFault(port)
    if (fault !== undefined) causes.push(invalidValue(`${path}.${name}.port`, port, fault))
  }
  for (const name of [
    'initialDelaySeconds',
    'timeoutSeconds',
    'periodSeconds',
    'successThreshold',
    'failureThreshold',
  ]) {
    const value = probe[name]
    if (typeof value === 'number' && value < 0) {
      causes.push(invalidValue(`${path}.${name}`, value, 'must be greater than or equal to 0'))
    }
  }
  return causes
}

const changeableContainerFields = ['image', 'resources']

/** What of a running pod's spec was changed that may not change. */
export function validatePodUpdate(spec: Fields, old: Fields): Cause[] {
  const frozen = (value: Fields): Fields => {
    const { activeDeadlineSeconds, tolerations, terminationGracePeriodSeconds, nodeName, schedulingGates, ...rest } =
      value
    void [activeDeadlineSeconds, tolerations, terminationGracePeriodSeconds, schedulingGates]
    const strip = (name: string): Fields[] =>
      objectsIn(rest, name).map((container) =>
        Object.fromEntries(Object.entries(container).filter(([field]) => !changeableContainerFields.includes(field))),
      )
    return {
      ...rest,
      ...(old.nodeName === undefined || old.nodeName === '' ? {} : { nodeName }),
      containers: strip('containers'),
      ...(rest.initContainers === undefined ? {} : { initContainers: strip('initContainers') }),
      ephemeralContainers: undefined,
    }
  }
  if (isSame(frozen(spec), frozen(old))) return []
  return [
    forbiddenField(
      'spec',
      'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
    ),
  ]
}
