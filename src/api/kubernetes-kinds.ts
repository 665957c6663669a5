// The built-in kinds of Kubernetes as the API serves them.
import { eventFromStorage, eventToStorage } from './event-versions.ts'
import type { Cause, KindDefinition, Schema } from './kind.ts'
import { applyKubernetesDefaults } from './kubernetes-defaults.ts'
import { type KubernetesKind, kubernetesKinds as table } from './kubernetes-kind-table.ts'
import { kubernetesSchema } from './kubernetes-schemas.ts'
import { validateKubernetesObject } from './kubernetes-validation.ts'
import type { KubeObject } from './objects.ts'
import { isObject, pruneUnknown, validateAgainst } from './schema-validation.ts'

type Others = NonNullable<KindDefinition['subresources']['others']>

const otherSubresources: Others = {
  token: { kind: 'TokenRequest', group: 'authentication.k8s.io', version: 'v1', verbs: ['create'] },
  log: { kind: 'Pod', verbs: ['get'] },
  exec: { kind: 'PodExecOptions', verbs: ['create', 'get'] },
  attach: { kind: 'PodAttachOptions', verbs: ['create', 'get'] },
  portforward: { kind: 'PodPortForwardOptions', verbs: ['create', 'get'] },
  eviction: { kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] },
  binding: { kind: 'Binding', verbs: ['create'] },
  approval: { kind: 'CertificateSigningRequest', verbs: ['get', 'patch', 'update'] },
  finalize: { kind: 'Namespace', verbs: ['update'] },
}

/** Every built-in kind. */
export function kubernetesKinds(): readonly KindDefinition[] {
  return table.map(definitionOf)
}

function definitionOf(kind: KubernetesKind): KindDefinition {
  const schema = kubernetesSchema(kind.group, kind.version, kind.kind)
  const others = kind.subresources.filter((name) => name !== 'status' && name !== 'scale')
  const isEvent = kind.group === 'events.k8s.io'
  return {
    group: kind.group,
    version: kind.version,
    kind: kind.kind,
    plural: kind.plural,
    namespaced: kind.namespaced,
    listKind: `${kind.kind}List`,
    singular: kind.singular,
    shortNames: kind.shortNames,
    categories: kind.categories,
    ...(kind.virtual ? { verbs: ['create'] as const } : {}),
    subresources: {
      ...(kind.subresources.includes('status') ? { status: true } : {}),
      ...(kind.subresources.includes('scale') ? { scale: scalePaths } : {}),
      ...(others.length > 0
        ? {
            others: Object.fromEntries(
              others.map((name) => [name, otherSubresources[name] ?? { kind: kind.kind, verbs: ['get'] }]),
            ),
          }
        : {}),
    },
    ...(schema === undefined ? {} : { schema, prune: (object: KubeObject) => pruneUnknown(schema, object) }),
    strategicMergePatch: true,
    applyDefaults: (object) => applyKubernetesDefaults(object, kind.group, kind.kind),
    validate: (object, old) => validate(kind, schema, object, old),
    selectableFields: Object.fromEntries(
      kind.selectableFields.map((path) => [path, (object: KubeObject) => fieldText(object, path)]),
    ),
    ...(isEvent
      ? { storage: { group: '', version: 'v1' }, toStorage: eventToStorage, fromStorage: eventFromStorage }
      : {}),
    ...(kind.group === 'certificates.k8s.io' && kind.version === 'v1alpha1'
      ? { storage: { group: kind.group, version: 'v1beta1' } }
      : {}),
    ...(hasGeneration.has(`${kind.group}/${kind.kind}`) ? { hasGeneration: true } : {}),
    ...(noGeneration.has(`${kind.group}/${kind.kind}`) ? { hasGeneration: false } : {}),
  }
}

const scalePaths = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.spec.selector',
}

const hasGeneration = new Set([
  'networking.k8s.io/NetworkPolicy',
  'networking.k8s.io/IngressClass',
  'discovery.k8s.io/EndpointSlice',
  'admissionregistration.k8s.io/MutatingWebhookConfiguration',
  'admissionregistration.k8s.io/ValidatingWebhookConfiguration',
])
const noGeneration = new Set([
  '/Service',
  '/Node',
  '/Namespace',
  'certificates.k8s.io/CertificateSigningRequest',
  'certificates.k8s.io/ClusterTrustBundle',
])

function validate(
  kind: KubernetesKind,
  schema: Schema | undefined,
  object: KubeObject,
  old: KubeObject | undefined,
): Cause[] {
  const shape =
    schema === undefined ? [] : validateAgainst(schema, object, '', { nullIsAbsent: true, duplicatesAllowed: true })
  return shape.length > 0 ? shape : validateKubernetesObject(kind.group, object, old)
}

/** The text of a field for field selectors: empty when it is absent. */
function fieldText(object: KubeObject, path: string): string {
  let value: unknown = object
  for (const name of path.split('.')) value = isObject(value) ? value[name] : undefined
  if (value === undefined || value === null)
    return path === 'spec.hostNetwork' || path === 'spec.unschedulable' ? 'false' : ''
  return String(value)
}
