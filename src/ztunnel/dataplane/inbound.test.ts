import assert from 'node:assert/strict'
import { test } from 'node:test'
import { meshOf } from '../../../test/support/mesh.ts'
import type { TunnelRequest } from '../../hbone/index.ts'
import { parseLocalFile } from '../state/index.ts'
import { serveRequest } from './inbound.ts'
import type { PodContext } from './pod-context.ts'
import { createConnectionTracker } from './tracker.ts'

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

test('policies that the workload names while its client is asked for are those that judge', async () => {
  const pod = { name: 'w', namespace: 'n', serviceAccount: 'a' }
  const workload = (policies: string) =>
    `workloads: [{uid: w, name: w, namespace: n, serviceAccount: a, workloadIps: [10.0.0.1], services: {}, authorizationPolicies: [${policies}]}]`
  const nobody = '{name: nobody, namespace: n, scope: WorkloadSelector, action: Allow, dryRun: false, rules: []}'
  const state = meshOf(`${workload('')}\npolicies: [${nobody}]`)
  const asked: string[] = []
  const outcomes: unknown[] = []
  const report = { close: (failure: unknown) => void outcomes.push(failure) }
  const context = {
    pod,
    options: { localWorkloadTimeoutMs: 1000, network: '', ports: { outbound: 15001, plaintext: 15006, hbone: 15008 } },
    services: {
      state,
      onDemand: {
        async ask(key: string) {
          asked.push(key)
          state.apply(parseLocalFile(workload('n/nobody')))
        },
      },
      reports: { open: () => report, deny: () => assert.fail('denied before it was judged') },
      rbacLog: { writes: () => false },
    },
    tracker: createConnectionTracker({ state, pod, onPolicyEnd: () => undefined }),
  } as unknown as PodContext
  let answer = 0
  const request: TunnelRequest = {
    method: 'CONNECT',
    authority: '10.0.0.1:80',
    headers: {},
    signal: new AbortController().signal,
    accept: () => assert.fail('accepted'),
    reject: (status) => {
      answer = status
    },
  }
  const from = { ip: '10.0.0.9', port: 1 }
  const to = { ip: '10.0.0.1', port: 15008 }
  await serveRequest(context, request, { from, to, peerIdentity: undefined, peerChain: [], preserveSource: false })
  assert.deepEqual(asked, ['/10.0.0.9'])
  assert.equal(answer, 401)
  assert.deepEqual(outcomes, [
    {
      error: 'connection closed due to policy rejection: allow policies exist, but none allowed',
      flag: 'DENY',
    },
  ])
  context.tracker.close()
})
