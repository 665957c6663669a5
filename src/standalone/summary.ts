// What `lateen up` prints once everything runs: processes, pods, and what to try next.
import { resources } from '../api/index.ts'
import type { Instance } from './instance.ts'
import type { Pod } from './node/types.ts'
import type { InstancePaths } from './paths.ts'
import { formatTable, podRows, processRows } from './report.ts'
import { shellWord, typedCommand, typedProgram } from './typed-command.ts'

/** Tables of the processes and the pods. */
export async function overview(instance: Instance): Promise<string> {
  const [pods, namespaces] = await Promise.all([
    instance.client.list<Pod>(resources.pods),
    instance.client.list(resources.namespaces),
  ])
  const processes = formatTable(processRows(instance.supervisor.records))
  return ['', processes, '', formatTable(podRows(pods.items, namespaces.items)), ''].join('\n')
}

/** @param mesh whether there are node proxies to look at */
export function whatToTry({ kubeconfig, stateDir }: InstancePaths, mesh: boolean): string {
  return [
    `${mesh ? 'The mesh is' : 'Everything is'} running. In another terminal:`,
    `  export KUBECONFIG=${shellWord(kubeconfig)}`,
    '  kubectl get pods -A',
    `  ${typedCommand(stateDir, 'status')}`,
    ...(mesh ? [`  ${typedProgram()} logs -f -n istio-system ds/ztunnel`] : []),
    `Ctrl-C here ends everything and keeps what the API holds for the next start; "${typedCommand(stateDir, 'down')}" removes that, too.`,
  ].join('\n')
}
