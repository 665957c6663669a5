// The roots of the channel to the CA change while a client runs.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { create } from '@bufbuild/protobuf'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import { createTestPki, type TestPki } from '../../../test/support/test-pki.ts'
import { ca } from '../../proto/index.ts'
import { certificateServiceDefinition, createCaClient } from './index.ts'

const identity = 'spiffe://cluster.local/ns/a/sa/b'

async function serve(pki: TestPki, port = 0) {
  const grpc = new Server()
  grpc.addService(certificateServiceDefinition, {
    CreateCertificate(
      call: { request: ca.IstioCertificateRequest },
      answer: (error: Error | null, value?: ca.IstioCertificateResponse) => void,
    ) {
      pki.authority.sign({ csrPem: call.request.csr, identities: [identity], validitySeconds: 60 }).then(
        (certChain) => answer(null, create(ca.IstioCertificateResponseSchema, { certChain: [...certChain] })),
        (error: Error) => answer(error),
      )
    },
  })
  const { chain, privateKey } = await pki.issue('127.0.0.1')
  const pair = { cert_chain: Buffer.from(chain), private_key: Buffer.from(privateKey) }
  const bound = await new Promise<number>((resolve, reject) => {
    grpc.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createSsl(null, [pair]), (error, at) =>
      error === null ? resolve(at) : reject(error),
    )
  })
  return { port: bound, [Symbol.dispose]: () => grpc.forceShutdown() }
}

test('a root that replaces another is taken up for the next request, and one that cannot be read leaves the one before', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'lateen-ca-roots-'))
  const path = join(directory, 'root-cert.pem')
  // As a mounted volume is updated: the file is a link through a folder that is a link, and that one is swapped.
  const publish = (version: string, text: string) => {
    mkdirSync(join(directory, version))
    writeFileSync(join(directory, version, 'root-cert.pem'), text)
    symlinkSync(version, join(directory, 'next'))
    renameSync(join(directory, 'next'), join(directory, 'data'))
  }
  symlinkSync('data/root-cert.pem', path)
  const [before, after] = [await createTestPki(), await createTestPki()]
  publish('1', before.roots)
  const warnings: string[] = []
  const first = await serve(before)
  const client = createCaClient({
    address: `https://127.0.0.1:${first.port}`,
    roots: { kind: 'file', path },
    impersonate: true,
    timeoutMs: 3000,
    warn: (text) => warnings.push(text),
  })
  try {
    assert.equal((await client.requestCertificate(identity)).roots.length, 1)
    publish('2', 'no certificate')
    await client.requestCertificate(identity)
    assert.match(warnings.join(), /keeping the roots of the CA channel: .*holds no PEM certificate/)
    first[Symbol.dispose]()
    using second = await serve(after, first.port)
    assert.equal(second.port, first.port)
    await assert.rejects(client.requestCertificate(identity), { code: 'CA_CALL' })
    publish('3', after.roots)
    await client.requestCertificate(identity)
    assert.equal(warnings.length, 2)
  } finally {
    first[Symbol.dispose]()
    client.close()
    rmSync(directory, { recursive: true })
  }
})
