// Clients that are known to a control plane by their certificates alone, each on a connection of its own.
import { create, fromBinary, type JsonObject, toBinary } from '@bufbuild/protobuf'
import { Metadata, status } from '@grpc/grpc-js'
import { createCertificateRequest } from '../../src/ca/client/index.ts'
import { ca } from '../../src/proto/index.ts'
import { makeLeaf, type TestCa } from './ca.ts'
import { clientTo, nodeOf, outcomeOf, type StreamOptions } from './delta-stream.ts'
import { address } from './xds-observer.ts'

export interface Certified {
  readonly authority: TestCa
  readonly identity: string
  readonly dns?: readonly string[]
  /** Sent along with the leaf. */
  readonly intermediates?: string
}

export interface CertifiedQuestion extends Certified {
  readonly typeUrl?: string
  readonly names?: string[]
  readonly namespace?: string
  readonly metadata?: JsonObject
}

export interface CertifiedClients {
  /** `served`, or with what status the stream ended. */
  ask(question: CertifiedQuestion): Promise<string>
  /** The chain that is answered to a request of the same identity, or the status of the refusal. */
  certificate(client: Certified): Promise<readonly string[] | string>
}

/** Of a control plane on this port, whose certificate these roots have signed. */
export function certifiedClients(port: number, roots: string): CertifiedClients {
  async function proofOf({ authority, identity, dns = [], intermediates = '' }: Certified): Promise<StreamOptions> {
    const { key, pem } = await makeLeaf(authority, { uris: [identity], dns })
    return { roots, certificate: { key, pem: pem + intermediates } }
  }

  return {
    async ask(question) {
      const { typeUrl = address, names = [], namespace = 'app', metadata = {} } = question
      const node = nodeOf('ztunnel', 'zt', namespace, metadata)
      const request = { typeUrl, node, resourceNamesSubscribe: names }
      const outcome = await outcomeOf(port, await proofOf(question), request)
      return outcome.replace(/:.*/s, '')
    },
    async certificate(of) {
      const client = clientTo(port, await proofOf(of))
      const { csrPem: csr } = await createCertificateRequest(of.identity)
      try {
        return await new Promise<readonly string[] | string>((resolve) =>
          client.makeUnaryRequest(
            '/istio.v1.auth.IstioCertificateService/CreateCertificate',
            (request: ca.IstioCertificateRequest) => Buffer.from(toBinary(ca.IstioCertificateRequestSchema, request)),
            (bytes: Buffer) => fromBinary(ca.IstioCertificateResponseSchema, bytes),
            create(ca.IstioCertificateRequestSchema, { csr }),
            new Metadata(),
            (error, response) =>
              resolve(error === null ? (response?.certChain ?? []) : (status[error.code] ?? String(error.code))),
          ),
        )
      } finally {
        client.close()
      }
    },
  }
}
