// The packet-filter programs of ambient mode, as text.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import {
  type AmbientSettings,
  hostProgram,
  iptablesRestoreInput,
  nftInput,
  type PodOverrides,
  podOverrides,
  podProgram,
} from '../../src/redirect/index.ts'
import type { ConformanceCase, ListCases } from './adapter.ts'

interface ProgramInput {
  backend: 'iptables' | 'nftables'
  scope: 'pod' | 'host'
  enableIPv6: boolean
  redirectDNS: boolean
  hostProbeSNATAddress: string
  hostProbeV6SNATAddress: string
  podOverrides?: PodOverrides
  kubeletUID?: string
}

function render(input: ProgramInput): string {
  const settings: AmbientSettings = {
    backend: input.backend,
    enableIpv6: input.enableIPv6,
    redirectDns: input.redirectDNS,
    probeSourceIpv4: input.hostProbeSNATAddress,
    probeSourceIpv6: input.hostProbeV6SNATAddress,
  }
  const none: PodOverrides = { ingressMode: false, virtualInterfaces: [], dnsProxy: 'unset' }
  const program =
    input.scope === 'host' ? hostProgram(settings, input.kubeletUID) : podProgram(settings, input.podOverrides ?? none)
  if (program.backend === 'nftables') return nftInput(program)
  return iptablesRestoreInput(program, 4) + iptablesRestoreInput(program, 6)
}

/** Rules by family block, table and chain, in order; declarations as a set. */
function iptablesShape(text: string): unknown {
  const blocks: Record<string, unknown>[] = []
  let table = ''
  for (const raw of text.split('\n')) {
    const line = raw.trim()
    if (line === '' || line === 'COMMIT' || line.endsWith('-save')) continue
    if (line.startsWith('*')) {
      table = line.slice(1).trim()
      if (blocks.length === 0 || table in (blocks.at(-1) ?? {})) blocks.push({})
      Object.assign(blocks.at(-1) ?? {}, {
        [table]: { declared: [] as string[], chains: {} as Record<string, string[]> },
      })
      continue
    }
    const current = blocks.at(-1)?.[table] as { declared: string[]; chains: Record<string, string[]> }
    const chain = line.split(' ')[1] ?? ''
    if (line.startsWith('-N')) current.declared = [...current.declared, chain].sort()
    else current.chains[chain] = [...(current.chains[chain] ?? []), line]
  }
  return blocks
}

/** Rules by table and chain, in order; table and chain declarations as a set. */
function nftShape(text: string): unknown {
  const declared = new Set<string>()
  const chains: Record<string, string[]> = {}
  for (const raw of text.split('\n')) {
    const line = raw.trim().replace(/\s+/g, ' ')
    if (line === '') continue
    if (!line.startsWith('add rule')) declared.add(line)
    else {
      const key = line.split(' ').slice(2, 5).join(' ')
      chains[key] = [...(chains[key] ?? []), line]
    }
  }
  return { declared: [...declared].sort(), chains }
}

function overrideCases(dir: string): ConformanceCase[] {
  const read = <T>(file: string): T[] => parse(readFileSync(join(dir, file), 'utf8')) as T[]
  const expected = read<{ id: number } & PodOverrides>('expected.yaml')
  return read<{ id: number; annotations: Record<string, string> }>('input.yaml').map(({ id, annotations }) => ({
    name: `pod-overrides/${id}`,
    run: () =>
      assert.deepEqual(
        { id, ...podOverrides(annotations).overrides },
        expected.find((one) => one.id === id),
      ),
  }))
}

export const cases: ListCases = (suiteDir) =>
  readdirSync(suiteDir, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => {
      const dir = join(suiteDir, name)
      if (!existsSync(join(dir, 'expected.txt'))) return overrideCases(dir)
      const run = (): void => {
        const input = parse(readFileSync(join(dir, 'input.yaml'), 'utf8')) as ProgramInput
        const shape = input.backend === 'iptables' ? iptablesShape : nftShape
        assert.deepEqual(shape(render(input)), shape(readFileSync(join(dir, 'expected.txt'), 'utf8')))
        assert.equal(render(input), render(input))
      }
      return [{ name, run }]
    })
