// Gives each pod a service account, and its containers the account's token, the cluster's CA and the namespace's name.
import { randomBytes } from 'node:crypto'
import type { KubeObject } from '../../../api/index.ts'
import { forbidden } from '../errors.ts'
import type { AdmissionPlugin, ObjectReader } from '../types.ts'

const mountPath = '/var/run/secrets/kubernetes.io/serviceaccount'

interface Container {
  readonly name: string
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[]
}

interface PodSpec {
  serviceAccountName?: string
  serviceAccount?: string
  automountServiceAccountToken?: boolean
  imagePullSecrets?: unknown[]
  containers?: Container[]
  initContainers?: Container[]
  volumes?: { name: string; [source: string]: unknown }[]
}

interface ServiceAccount extends KubeObject {
  readonly automountServiceAccountToken?: boolean
  readonly imagePullSecrets?: readonly unknown[]
}

export function createServiceAccountAdmission(objects: () => ObjectReader): AdmissionPlugin {
  return {
    name: 'ServiceAccount',
    async mutate(request) {
      const { kind, operation, subresource, object, namespace = '' } = request
      if (kind.group !== '' || kind.plural !== 'pods' || operation !== 'CREATE' || subresource !== undefined) return
      if (object === undefined || object.metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined) return
      const spec = (object.spec ?? {}) as PodSpec
      const name = spec.serviceAccountName ?? spec.serviceAccount ?? 'default'
      const account = await findAccount(objects(), namespace, name)
      if (account === undefined) {
        throw forbidden(
          kind,
          request.name,
          `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`,
        )
      }
      spec.serviceAccountName = name
      spec.serviceAccount = name
      if ((spec.imagePullSecrets?.length ?? 0) === 0 && account.imagePullSecrets !== undefined) {
        spec.imagePullSecrets = structuredClone([...account.imagePullSecrets])
      }
      if (spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true) mountToken(spec)
      object.spec = spec
    },
  }
}

/** The default account of a new namespace comes a moment after the namespace: a pod that is applied with it waits. */
const defaultAccountWaitMs = 2000

async function findAccount(
  objects: ObjectReader,
  namespace: string,
  name: string,
): Promise<ServiceAccount | undefined> {
  const find = (): ServiceAccount | undefined => objects.get('', 'serviceaccounts', { namespace, name })
  const found = find()
  if (found !== undefined || name !== 'default') return found
  const { promise, resolve } = Promise.withResolvers<ServiceAccount | undefined>()
  const timer = setTimeout(() => resolve(undefined), defaultAccountWaitMs)
  const unsubscribe = objects.subscribe('', 'serviceaccounts', () => {
    const account = find()
    if (account !== undefined) resolve(account)
  })
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    unsubscribe()
  }
}

function mountToken(spec: PodSpec): void {
  const containers = [...(spec.initContainers ?? []), ...(spec.containers ?? [])]
  const lacking = containers.filter(
    ({ volumeMounts }) => volumeMounts?.some((mount) => mount.mountPath === mountPath) !== true,
  )
  if (lacking.length === 0) return
  const existing = spec.volumes?.find((volume) => volume.name.startsWith('kube-api-access-'))
  const volume = existing ?? tokenVolume()
  if (existing === undefined) spec.volumes = [...(spec.volumes ?? []), volume]
  for (const container of lacking) {
    container.volumeMounts = [...(container.volumeMounts ?? []), { name: volume.name, readOnly: true, mountPath }]
  }
}

function tokenVolume(): { name: string; [source: string]: unknown } {
  const alphabet = 'bcdfghjklmnpqrstvwxz2456789'
  const suffix = [...randomBytes(5)].map((byte) => alphabet[byte % alphabet.length]).join('')
  return {
    name: `kube-api-access-${suffix}`,
    projected: {
      defaultMode: 0o644,
      sources: [
        { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        {
          downwardAPI: {
            items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
          },
        },
      ],
    },
  }
}
