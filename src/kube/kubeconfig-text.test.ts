import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { clusterOfText, connectionOfText, riskyKubeconfigOptions } from './index.ts'

const kubeconfig = (user: object, cluster: object = {}): string =>
  JSON.stringify({
    'current-context': 'there',
    contexts: [{ name: 'there', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443', ...cluster } }],
    users: [{ name: 'u', user }],
  })

describe('a kubeconfig that somebody else wrote', () => {
  test('gives a connection by token', async () => {
    const connection = await connectionOfText(kubeconfig({ token: 'secret' }), 'Secret a/b')
    assert.equal(connection.server, 'https://10.0.0.1:6443')
    assert.equal(await connection.authorization(), 'Bearer secret')
  })

  const risky: Record<(typeof riskyKubeconfigOptions)[number], [object, object?]> = {
    exec: [{ exec: { command: 'sh' } }],
    authProvider: [{ 'auth-provider': { name: 'gcp' } }],
    clientKey: [{ 'client-key': '/etc/key' }],
    clientCertificate: [{ 'client-certificate': '/etc/cert' }],
    tokenFile: [{ tokenFile: '/etc/shadow' }],
    certificateAuthority: [{}, { 'certificate-authority': '/etc/ca' }],
    insecureSkipTLSVerify: [{}, { 'insecure-skip-tls-verify': true }],
  }
  for (const option of riskyKubeconfigOptions) {
    test(`may not use ${option}`, async () => {
      await assert.rejects(connectionOfText(kubeconfig(...risky[option]), 'Secret a/b'), {
        message: `Secret a/b: ${option} is not allowed`,
      })
    })
  }

  test('may carry the token of an OIDC provider', async () => {
    const user = { 'auth-provider': { name: 'oidc', config: { 'id-token': 'issued' } } }
    const connection = await connectionOfText(kubeconfig(user), 'Secret a/b')
    assert.equal(await connection.authorization(), 'Bearer issued')
    const bare = { 'auth-provider': { name: 'oidc', config: { 'refresh-token': 'r' } } }
    await assert.rejects(connectionOfText(kubeconfig(bare), 'S'), { message: 'S: authProvider is not allowed' })
  })

  test('may not send its credentials for everybody to read', async () => {
    const text = kubeconfig({ token: 'secret' }, { server: 'http://10.0.0.1' })
    await assert.rejects(connectionOfText(text, 'S'), /server: expected https/)
    assert.equal((await connectionOfText(text, 'S', ['insecureSkipTLSVerify'])).server, 'http://10.0.0.1')
  })

  test('leads to the cluster of its current context, else of the first by name, else to its first cluster', async () => {
    const clusters = ['a', 'b'].map((name) => ({ name, cluster: { server: `https://${name}` } }))
    const contexts = [
      { name: 'y', context: { cluster: 'a' } },
      { name: 'x', context: { cluster: 'b' } },
    ]
    for (const [config, name] of [
      [{ clusters, contexts, 'current-context': 'y' }, 'a'],
      [{ clusters, contexts }, 'b'],
      [{ clusters }, 'a'],
    ] as const) {
      assert.equal(await clusterOfText(JSON.stringify(config), 'f'), name)
      assert.equal((await connectionOfText(JSON.stringify(config), 'f')).server, `https://${name}`)
    }
    await assert.rejects(clusterOfText('{"current-context": "z"}', 'f'), /f: there is no context "z"/)
    await assert.rejects(clusterOfText('{}', 'f'), /f: there is no cluster/)
  })

  test('may use what is allowed by name', async () => {
    const text = kubeconfig(...risky.insecureSkipTLSVerify)
    const connection = await connectionOfText(text, 'Secret a/b', ['insecureSkipTLSVerify'])
    assert.equal(connection.insecureSkipTlsVerify, true)
  })

  test('that cannot be read is refused with its name', async () => {
    await assert.rejects(connectionOfText('a: [', 'Secret a/b: c1'), /^KubeError: Secret a\/b: c1: |Secret a\/b: c1/)
    await assert.rejects(connectionOfText(kubeconfig({}, { server: 'file:///x' }), 'S'), /server: expected https/)
  })
})
