import assert from 'node:assert/strict'
import { test } from 'node:test'
import { meshOf } from '../../../test/support/mesh.ts'
import type { TunnelRequest } from '../../hbone/index.ts'
import { serveRequest } from './inbound.ts'
import type { PodContext } from './pod-context.ts'

test('a request that is wrong in itself is refused before the workload is waited for', async () => {
  const pod = { name: 'late', namespace: 'n', serviceAccount: 'a' }
  const denied: string[] = []
  const waited: unknown[] = []
  const mesh = meshOf('workloads: []')
  const state = {
    ...mesh,
    waitForLocalWorkload: (...args: Parameters<typeof mesh.waitForLocalWorkload>) => {
      waited.push(args[0])
      return mesh.waitForLocalWorkload(...args)
    },
  }
  const context = {
    pod,
    options: { localWorkloadTimeoutMs: 1 },
    services: { state, reports: { deny: (_: unknown, { error }: { error: string }) => void denied.push(error) } },
  } as unknown as PodContext
  const answerTo = async (method: string, authority: string) => {
    let answer = 0
    const request: TunnelRequest = {
      method,
      authority,
      headers: {},
      signal: new AbortController().signal,
      accept: () => assert.fail('accepted'),
      reject: (status) => {
        answer = status
      },
    }
    const to = { ip: '10.0.0.1', port: 15008 }
    const peer = { from: to, to, peerIdentity: undefined, peerChain: [], preserveSource: false }
    await serveRequest(context, request, peer)
    return answer
  }
  assert.equal(await answerTo('GET', '10.0.0.1:80'), 400)
  assert.equal(await answerTo('CONNECT', '10.0.0.1'), 400)
  assert.deepEqual(waited, [])
  assert.equal(await answerTo('CONNECT', '10.0.0.1:80'), 503)
  assert.deepEqual(waited, [pod])
  assert.deepEqual(denied, [
    'expected method CONNECT, got GET',
    'no valid authority pseudo header: 10.0.0.1',
    'failed to fetch information about local workload: a.n (late)',
  ])
})
