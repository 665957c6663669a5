// The large tables of this room, loaded only by who needs them: a data-plane process never does.
import type { CustomResourceDefinition } from './custom-kinds.ts'
import type { KindDefinition, Schema } from './kind.ts'

/** Every built-in kind of Kubernetes, as the API serves it. */
export async function loadKubernetesKinds(): Promise<readonly KindDefinition[]> {
  const { kubernetesKinds } = await import('./kubernetes-kinds.ts')
  return kubernetesKinds()
}

/** The schemas of built-in kinds and of what they contain, by the name of their OpenAPI definition. */
export async function loadKubernetesDefinitions(): Promise<ReadonlyMap<string, Schema>> {
  const { kubernetesDefinitions } = await import('./kubernetes-schemas.ts')
  return kubernetesDefinitions()
}

/** The definitions of every Istio and Gateway API kind. */
export async function loadMeshCrds(): Promise<readonly CustomResourceDefinition[]> {
  const [{ istioCrds }, { gatewayCrds }] = await Promise.all([import('./istio-crds.ts'), import('./gateway-crds.ts')])
  return [...istioCrds, ...gatewayCrds]
}
