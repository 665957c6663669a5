import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { connectionOfText, riskyKubeconfigOptions } from './index.ts'

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
