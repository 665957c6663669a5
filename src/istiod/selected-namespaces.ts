// Which namespaces the mesh looks at, by the discovery selectors of mesh config in force.
import { type KubeObject, matchesLabelSelector } from '../api/index.ts'
import type { AmbientInputs } from '../discovery/ambient/index.ts'

export interface SelectedNamespaces {
  has(namespace: KubeObject): boolean
  /** Calls the listener when the selectors are other ones. Returns the function that ends the subscription. */
  subscribe(listener: () => void): () => void
}

/** The system namespace and the root namespace are always looked at. */
export function selectedNamespaces(
  { meshConfig }: Pick<AmbientInputs, 'meshConfig'>,
  systemNamespace: string,
): SelectedNamespaces {
  const selectorsOf = () => meshConfig.value?.discoverySelectors ?? []
  return {
    has({ metadata: { name, labels } }) {
      const selectors = selectorsOf()
      if (selectors.length === 0 || name === systemNamespace || name === meshConfig.value?.rootNamespace) return true
      return selectors.some((selector) => matchesLabelSelector(selector, labels))
    },
    subscribe(listener) {
      let known = JSON.stringify(selectorsOf())
      return meshConfig.collection.subscribe(() => {
        const now = JSON.stringify(selectorsOf())
        if (now === known) return
        known = now
        listener()
      })
    },
  }
}
