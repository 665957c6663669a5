// The certificate service on a gRPC server. Nothing of a request is read before its sender has proved who it is.
import { X509Certificate } from 'node:crypto'
import { create } from '@bufbuild/protobuf'
import {
  type handleClientStreamingCall,
  type ServerReadableStream,
  type ServiceDefinition,
  status,
} from '@grpc/grpc-js'
import { ca } from '../proto/index.ts'
import type { AuthenticationRequest } from './authentication/authenticator.ts'
import { isMeshPeer } from './authentication/mesh-peer.ts'
import { CertificateRefusal, type CertificateRequestMessage, type CertificateService } from './certificate-service.ts'
import { certificateServiceDefinition } from './client/index.ts'

/** The service for a gRPC server: `server.addService(definition, implementation)`. */
export interface CertificateServiceBinding {
  readonly definition: ServiceDefinition
  readonly implementation: {
    readonly CreateCertificate: handleClientStreamingCall<ca.IstioCertificateRequest, ca.IstioCertificateResponse>
  }
}

type Call = ServerReadableStream<ca.IstioCertificateRequest, ca.IstioCertificateResponse>

/** How long the message of a caller may take to come in. */
const longestReadMs = 10_000

/** `requestOf` tells who is at the other end of a call, as requestOfCall does. */
export function bindCertificateService(
  service: CertificateService,
  requestOf: (call: Call) => AuthenticationRequest,
  readMs = longestReadMs,
): CertificateServiceBinding {
  const { CreateCertificate } = certificateServiceDefinition
  return {
    // Of a unary call the library reads the whole message before anybody is asked; of a stream, when we say so. Both are the same on the wire.
    definition: { CreateCertificate: { ...CreateCertificate, requestStream: true } },
    implementation: {
      CreateCertificate(call, callback) {
        const read = async () => messageOf(await onlyMessage(call, readMs))
        const answer = async () => service.createCertificate(read, requestOf(call))
        answer().then(
          (certChain) => callback(null, create(ca.IstioCertificateResponseSchema, { certChain: [...certChain] })),
          (error: unknown) =>
            callback(
              error instanceof CertificateRefusal
                ? { code: error.code, details: error.message }
                : { code: status.INTERNAL, details: 'internal error' },
            ),
        )
      },
    },
  }
}

function messageOf({ csr, validityDuration, metadata }: ca.IstioCertificateRequest): CertificateRequestMessage {
  const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
  return {
    csr,
    validitySeconds: Number(validityDuration),
    impersonatedIdentity: textOf(metadata?.ImpersonatedIdentity),
    certSigner: textOf(metadata?.CertSigner),
  }
}

/** Reads the one message of a call. Rejects when there is none or a second one, and when it takes too long. */
function onlyMessage(call: Call, readMs: number): Promise<ca.IstioCertificateRequest> {
  return new Promise((resolve, reject) => {
    let message: ca.IstioCertificateRequest | undefined
    const timer = setTimeout(
      () => end(new CertificateRefusal(status.DEADLINE_EXCEEDED, 'the request took too long to come in')),
      readMs,
    )
    const end = (error?: Error): void => {
      clearTimeout(timer)
      if (message !== undefined && error === undefined) resolve(message)
      else reject(error ?? new CertificateRefusal(status.INVALID_ARGUMENT, 'expected a request'))
    }
    call.on('data', (next: ca.IstioCertificateRequest) => {
      if (message === undefined) message = next
      else end(new CertificateRefusal(status.INVALID_ARGUMENT, 'expected one request'))
    })
    call.on('end', () => end())
    call.on('error', end)
    call.on('close', () => end(new Error('the call was given up')))
  })
}

/**
 * The peer and metadata of a gRPC call. A client certificate counts only where the TLS layer has verified it against the server's
 * client roots (grpc-js reports no other) and it names one workload of these trust domains.
 */
export function requestOfCall(
  call: Pick<Call, 'getPeer' | 'metadata' | 'getAuthContext'>,
  trustDomains: readonly string[],
): AuthenticationRequest {
  const { sslPeerCertificate } = call.getAuthContext()
  const leaf = sslPeerCertificate === undefined ? undefined : new X509Certificate(sslPeerCertificate.raw)
  const verifiedChains = leaf !== undefined && isMeshPeer(leaf, trustDomains) ? [[leaf]] : []
  return {
    peerAddress: call.getPeer(),
    ...(leaf === undefined ? {} : { peerAuthentication: { kind: 'tls', verifiedChains } }),
    header: (name) => call.metadata.get(name).map(String),
  }
}
