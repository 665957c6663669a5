import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { startApi } from '../../test/support/embedded-api.ts'
import { resources } from '../api/index.ts'
import { createKubeClient, isKubeError, loadConnection } from '../kube/index.ts'
import { type Part, writeCredentials } from './credentials.ts'

const directory = mkdtempSync(join(tmpdir(), 'lateen-credentials-'))
const api = await startApi(directory)
const client = await createKubeClient({ kubeconfig: api.kubeconfig })
after(async () => {
  await client.close()
  await api[Symbol.asyncDispose]()
  rmSync(directory, { recursive: true })
})

const node: Part = { kind: 'node', name: 'n1' }
const path = join(directory, 'kubeconfig-of-part')
const write = (part: Part, host = '127.0.0.1') =>
  writeCredentials({ client, administrator: api.kubeconfig, part, path, host })
const certificate = async (): Promise<X509Certificate> =>
  new X509Certificate((await (await loadConnection({ kubeconfig: path })).tls()).cert ?? '')

for (const [part, subject] of [
  [node, 'O=system:nodes\nCN=system:node:n1'],
  [{ kind: 'controllers' }, 'CN=system:kube-controller-manager'],
  [{ kind: 'scheduler' }, 'CN=system:kube-scheduler'],
] as const) {
  test(`${part.kind}: a certificate as ${subject.replace('\n', ', ')}, in a file for its owner only, and no request left`, async () => {
    await write(part)
    assert.equal((await certificate()).subject, subject)
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.deepEqual((await client.list(resources.certificateSigningRequests)).items, [])
    const own = await createKubeClient({ kubeconfig: path })
    await assert.rejects(own.list(resources.secrets), (error) => isKubeError(error, 403))
    await own.close()
  })
}

test('a good certificate is kept, whatever the address of the API server; others are replaced', async () => {
  await write(node)
  const first = (await certificate()).fingerprint256
  await write(node, 'fd00::1')
  assert.equal((await certificate()).fingerprint256, first)
  const port = api.addresses[0]?.port
  assert.equal((await loadConnection({ kubeconfig: path })).server, `https://[fd00::1]:${port}`)
  await write({ kind: 'node', name: 'n2' })
  assert.equal((await certificate()).subject, 'O=system:nodes\nCN=system:node:n2')
  // What the administrator has is not what a node is to have, as in states of earlier versions.
  writeFileSync(path, readFileSync(api.kubeconfig))
  await write(node)
  assert.equal((await certificate()).subject, 'O=system:nodes\nCN=system:node:n1')
  writeFileSync(path, 'half a fi')
  await write(node)
  assert.equal((await certificate()).subject, 'O=system:nodes\nCN=system:node:n1')
})
