// Decisions of the CNI plugin and of the node agent.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { ConformanceCase, ListCases } from './adapter.ts'
import { runAgentCase } from './cni-decisions-agent.ts'
import { runPluginCase } from './cni-decisions-plugin.ts'

export const cases: ListCases = (suiteDir) =>
  readdirSync(suiteDir, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }): ConformanceCase => {
      const read = (file: string): unknown => parse(readFileSync(join(suiteDir, name, file), 'utf8'))
      const expected = read('expected.yaml')
      const { decision, errorContains } = expected as { decision?: string; errorContains?: string[] }
      const sidecar = decision === 'sidecar' || errorContains?.some((text) => text.startsWith('annotation value error'))
      return {
        name,
        ...(sidecar ? { pending: 'the redirection of sidecars comes with the sidecar proxy' } : {}),
        run: () => (name.startsWith('agent-') ? runAgentCase : runPluginCase)(read('input.yaml'), expected),
      }
    })
