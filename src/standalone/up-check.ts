// `lateen up --check`: the report of the running sample, as lines and an exit code.
import { resources } from '../api/index.ts'
import { createKubeClient, type KubeClient } from '../kube/index.ts'
import { StandaloneError } from './error.ts'
import { readJson } from './files.ts'
import type { NetworkPlan } from './network/plan.ts'
import { type InstancePaths, networkFile } from './paths.ts'

/** What a check looks at: an instance that runs. */
export interface Checked {
  readonly client: KubeClient
  readonly plan: NetworkPlan
}

/** Resolves with 0 when everything holds, with 1 otherwise. */
export async function reportSampleCheck({ client, plan }: Checked, print: (line: string) => void): Promise<number> {
  const { checkSample, resultText, sampleNamespaces } = await import('./check/index.ts')
  for (const name of sampleNamespaces) {
    if ((await client.get(resources.namespaces, { name })) !== undefined) continue
    print(`the sample is not there: there is no namespace ${name} (it is applied when up is given no other manifests)`)
    return 1
  }
  const nodeNamespacePaths = plan.nodes.map(({ namespace }) => `/run/netns/${namespace}`)
  let failed = 0
  let passed = 0
  for await (const result of checkSample({ client, nodeNamespacePaths })) {
    print(resultText(result))
    if (result.passed) passed += 1
    else failed += 1
  }
  print(`${passed} held, ${failed} did not`)
  return failed === 0 && passed > 0 ? 0 : 1
}

/** Runs a check on the instance that another process keeps running, and leaves it running. */
export async function checkRunning(
  paths: InstancePaths,
  check: (checked: Checked) => Promise<number>,
): Promise<number> {
  if (process.getuid?.() !== 0) {
    throw new StandaloneError(
      'NEEDS_ROOT',
      'a mesh that runs without root is in namespaces of its own: end it with "lateen down", and "lateen up --check" starts and verifies one',
    )
  }
  const plan = await readJson<NetworkPlan>(networkFile(paths.stateDir))
  if (plan === undefined) throw new StandaloneError('STARTING', `the mesh of ${paths.stateDir} is only just starting`)
  const client = await createKubeClient({ kubeconfig: paths.kubeconfig })
  try {
    return await check({ client, plan })
  } finally {
    await client.close()
  }
}
