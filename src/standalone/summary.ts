// What `lateen up` prints once everything runs: processes, pods, and what to try next.
import { relative } from 'node:path'
import { resources } from '../api/index.ts'
import { defaultStateDir } from '../util/index.ts'
import type { Instance } from './instance.ts'
import { quote } from './node/mounts.ts'
import type { Pod } from './node/types.ts'
import { type InstancePaths, ownCommand } from './paths.ts'
import { formatTable, podRows, processRows } from './report.ts'
import { isRootless } from './rootless.ts'

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
  const lateen = typedCommand()
  // Without root this process is root in a namespace of its own, and the default of the user outside is another.
  const named = stateDir === defaultStateDir() || isRootless() ? '' : ` --state-dir ${shellWord(stateDir)}`
  return [
    `${mesh ? 'The mesh is' : 'Everything is'} running. In another terminal:`,
    `  export KUBECONFIG=${shellWord(kubeconfig)}`,
    '  kubectl get pods -A',
    `  ${lateen} status${named}`,
    ...(mesh ? [`  ${lateen} logs -f -n istio-system ds/ztunnel`] : []),
    `Ctrl-C here ends everything and keeps what the API holds for the next start; "${lateen} down${named}" removes that, too.`,
  ].join('\n')
}

/** How a user calls this program: by its path in a checkout, by npx where npm started it, else by its name. */
function typedCommand(env: NodeJS.ProcessEnv = process.env): string {
  if (import.meta.filename.endsWith('.ts')) return shellWord(relative(process.cwd(), ownCommand().at(-1) ?? ''))
  return env.npm_command === undefined ? 'lateen' : 'npx lateen'
}

function shellWord(text: string): string {
  return /^[\w./:=@-]+$/.test(text) ? text : quote(text)
}
