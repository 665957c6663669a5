// IstioCertificateService: authenticates the caller, decides which identity it may have, signs, and writes down what was decided.
import { X509Certificate } from 'node:crypto'
import { status } from '@grpc/grpc-js'
import { createRefusalLog, type Scope } from '../observability/index.ts'
import {
  type Authentication,
  type AuthenticationRequest,
  type Authenticator,
  authenticate,
} from './authentication/authenticator.ts'
import { type CaMetrics, countSigningError } from './metrics.ts'
import type { AuthorizeImpersonation } from './node-authorization.ts'
import { SigningError } from './signing/errors.ts'
import type { Caller, SigningRequest } from './types.ts'

export interface CertificateServiceOptions {
  /** `requestedSigner`: the signer that the request names, for an authority that has several. */
  readonly authority: { sign(request: SigningRequest, requestedSigner: string): Promise<readonly string[]> }
  readonly authenticators: readonly Authenticator[]
  /** The node authorisation of a cluster; undefined for a cluster that is not known, or when no node accounts are trusted. */
  readonly nodeAuthorizerOf: (clusterId: string) => AuthorizeImpersonation | undefined
  readonly metrics: CaMetrics
  /** Every issuance and every refusal is one line here. */
  readonly audit: Scope
  /** Requests being served at most; more are turned away. */
  readonly maxConcurrent?: number
}

export interface CertificateRequestMessage {
  readonly csr: string
  readonly validitySeconds: number
  readonly impersonatedIdentity: string
  readonly certSigner: string
}

/** A refusal as the caller gets it. */
export class CertificateRefusal extends Error {
  readonly code:
    | status.UNAUTHENTICATED
    | status.INVALID_ARGUMENT
    | status.INTERNAL
    | status.RESOURCE_EXHAUSTED
    | status.DEADLINE_EXCEEDED

  constructor(code: CertificateRefusal['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'CertificateRefusal'
    this.code = code
  }
}

export interface CertificateService {
  /**
   * The answer's chain: leaf first, root bundle last. `read` brings in the message; it is called for callers who proved who they are, and
   * for no others. Rejects with a CertificateRefusal.
   */
  createCertificate(
    read: () => Promise<CertificateRequestMessage>,
    request: AuthenticationRequest,
  ): Promise<readonly string[]>
}

/** Of SPIFFE identities (SPIFFE-ID, section 2.3), and enough for the names of signers. */
const longestName = 2048

export function createCertificateService(options: CertificateServiceOptions): CertificateService {
  const { authority, authenticators, metrics, audit, maxConcurrent = 500 } = options
  const nobody = createRefusalLog(audit)
  let serving = 0

  async function createCertificate(read: () => Promise<CertificateRequestMessage>, request: AuthenticationRequest) {
    metrics.requests.inc()
    if (serving >= maxConcurrent) {
      metrics.turnedAway.inc()
      nobody('certificate refused', { peer: request.peerAddress, reason: 'too many certificate requests' })
      throw new CertificateRefusal(status.RESOURCE_EXHAUSTED, 'too many certificate requests')
    }
    serving += 1
    try {
      const caller = acceptedCaller(await authenticate(authenticators, request), request)
      const message = await messageOf(read, caller, request)
      const identities = identitiesFor(caller, message.impersonatedIdentity, request)
      const signing = { csrPem: message.csr, identities, validitySeconds: message.validitySeconds }
      const chain = await sign(signing, message.certSigner, caller, request)
      metrics.issued.inc()
      record(chain[0] ?? '', identities, caller, request)
      return chain
    } finally {
      serving -= 1
    }
  }

  function acceptedCaller(outcome: Authentication, request: AuthenticationRequest): Caller {
    if (outcome.kind === 'accepted') return outcome.caller
    metrics.authenticationFailures.inc()
    if (outcome.isNameless) metrics.identityErrors.inc()
    nobody('certificate refused', { peer: request.peerAddress, reason: outcome.reasons.join('; ') })
    throw new CertificateRefusal(status.UNAUTHENTICATED, 'request authenticate failure')
  }

  async function messageOf(
    read: () => Promise<CertificateRequestMessage>,
    caller: Caller,
    request: AuthenticationRequest,
  ): Promise<CertificateRequestMessage> {
    try {
      return await read()
    } catch (cause) {
      refused(caller, request, cause, {})
      if (cause instanceof CertificateRefusal) throw cause
      throw new CertificateRefusal(status.INVALID_ARGUMENT, 'the request cannot be read', { cause })
    }
  }

  function identitiesFor(caller: Caller, impersonated: string, request: AuthenticationRequest): readonly string[] {
    if (impersonated === '') return caller.identities
    try {
      authorizeImpersonation(caller, impersonated, request.header('clusterid')[0] ?? '')
      return [impersonated]
    } catch (cause) {
      metrics.authenticationFailures.inc()
      refused(caller, request, cause, { requested: shortened(impersonated) })
      throw new CertificateRefusal(status.UNAUTHENTICATED, 'request impersonation authentication failure', { cause })
    }
  }

  function authorizeImpersonation(caller: Caller, impersonated: string, clusterId: string): void {
    if (impersonated.length > longestName) throw new Error(`an identity of more than ${longestName} characters`)
    if (caller.kubernetes === undefined) throw new Error('the caller has no Kubernetes token')
    const authorize = options.nodeAuthorizerOf(clusterId)
    if (authorize === undefined) throw new Error(`no node authorizer for cluster ${clusterId}`)
    authorize({ caller: caller.kubernetes, requested: impersonated })
  }

  async function sign(
    signing: SigningRequest,
    requestedSigner: string,
    caller: Caller,
    request: AuthenticationRequest,
  ): Promise<readonly string[]> {
    try {
      if (requestedSigner.length > longestName) {
        throw new SigningError('CERT_GEN_ERROR', `a signer's name of more than ${longestName} characters`)
      }
      return await authority.sign(signing, requestedSigner)
    } catch (cause) {
      const { code } = cause instanceof SigningError ? cause : new SigningError('CERT_GEN_ERROR', '')
      countSigningError(metrics, code)
      refused(caller, request, cause, { code })
      const isTheirs = code === 'CSR_ERROR' || code === 'TTL_ERROR'
      const why = cause instanceof SigningError ? cause.message : 'internal error'
      throw new CertificateRefusal(isTheirs ? status.INVALID_ARGUMENT : status.INTERNAL, `CSR signing error (${why})`, {
        cause,
      })
    }
  }

  function refused(
    caller: Caller,
    request: AuthenticationRequest,
    cause: unknown,
    fields: Readonly<Record<string, string>>,
  ): void {
    audit.warn('certificate refused', {
      peer: request.peerAddress,
      caller: caller.identities.join(' '),
      ...fields,
      reason: reasonOf(cause),
    })
  }

  function record(
    leafPem: string,
    identities: readonly string[],
    caller: Caller,
    request: AuthenticationRequest,
  ): void {
    if (!audit.writes('info')) return
    const leaf = new X509Certificate(leafPem)
    audit.info('certificate issued', {
      peer: request.peerAddress,
      caller: caller.identities.join(' '),
      source: caller.source,
      identities: identities.join(' '),
      serial: BigInt(`0x${leaf.serialNumber}`),
      notAfter: leaf.validToDate.toISOString(),
    })
  }

  return { createCertificate }
}

function shortened(text: string): string {
  return text.length > longestName ? `${text.slice(0, 100)}…` : text
}

/** What happened, and why, as far as it is known: for the log. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause === undefined ? '' : reasonOf(error.cause)
  return error.message.includes(cause) ? error.message : `${error.message}: ${cause}`
}
