// `lateen up --check`: the report of the running sample, as lines and an exit code.
import type { Instance } from './instance.ts'

/** Resolves with 0 when everything holds, with 1 otherwise. */
export async function reportSampleCheck(instance: Instance, print: (line: string) => void): Promise<number> {
  const { checkSample, resultText } = await import('./check/index.ts')
  const nodeNamespacePaths = instance.plan.nodes.map(({ namespace }) => `/run/netns/${namespace}`)
  let failed = 0
  let passed = 0
  for await (const result of checkSample({ client: instance.client, nodeNamespacePaths })) {
    print(resultText(result))
    if (result.passed) passed += 1
    else failed += 1
  }
  print(`${passed} held, ${failed} did not`)
  return failed === 0 && passed > 0 ? 0 : 1
}
