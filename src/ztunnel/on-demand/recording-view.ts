// A view of the mesh that notes what was looked for in vain, under the keys by which a control plane is asked for it.
import type { MeshView } from '../state/index.ts'

export interface RecordingView {
  readonly view: MeshView
  /** `<network>/<IP>` and `<namespace>/<hostname>`, each once. */
  readonly missed: ReadonlySet<string>
}

export function recordMisses(view: MeshView): RecordingView {
  const missed = new Set<string>()
  function note<T>(found: T | undefined, key: string): T | undefined {
    if (found === undefined) missed.add(key)
    return found
  }
  return {
    missed,
    view: {
      ...view,
      workloadByAddress: (network, ip) =>
        // An address that is a service's is known, whatever else is not.
        view.serviceByVip(network, ip) === undefined
          ? note(view.workloadByAddress(network, ip), `${network}/${ip}`)
          : view.workloadByAddress(network, ip),
      workloadByHostname: (namespace, hostname) =>
        note(view.workloadByHostname(namespace, hostname), `${namespace}/${hostname}`),
    },
  }
}
