// Asks a certificate authority (the control plane, or any server of the same gRPC service) for workload certificates.
import { readFile } from 'node:fs/promises'
import { getCACertificates } from 'node:tls'
import { create } from '@bufbuild/protobuf'
import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { AbandonableCredentials } from '../../grpc/index.ts'
import { ca } from '../../proto/index.ts'
import { acceptServerNames, certificateBlocks } from '../../util/index.ts'
import type { WorkloadCertificate } from '../types.ts'
import { certificateFromAnswer } from './answer.ts'
import { CertificateError } from './errors.ts'
import { createCertificateRequest } from './request.ts'
import { certificateServiceDefinition } from './service-definition.ts'

/** Who the CA is verified against. A file is read again before each request, so that a new root is taken up without a restart. */
export type ChannelRoots =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'pem'; readonly pem: string }
  | { readonly kind: 'system' }

export interface CaClientOptions {
  /** `https://host:port`, or `host:port`. */
  readonly address: string
  readonly roots: ChannelRoots
  /** A second name that the CA's certificate may carry instead of the host of the address. */
  readonly alternativeHostname?: string
  /** The bearer token, asked for before each request; undefined sends none. */
  readonly token?: () => Promise<string | undefined> | string | undefined
  readonly clusterId?: string
  /** Further gRPC metadata. */
  readonly headers?: Readonly<Record<string, string>>
  /** Requested lifetime in seconds; the CA's default when left out. */
  readonly validitySeconds?: number
  /** Ask for certificates of other identities than the token's own, as a node proxy does; the answer is then checked to be for that identity. */
  readonly impersonate: boolean
  readonly timeoutMs?: number
  /** The longest time for one TLS handshake. */
  readonly handshakeTimeoutMs?: number
  readonly warn?: (message: string) => void
}

export interface CaClient extends AsyncDisposable {
  /** A new key and its certificate. Rejects with a CertificateError. */
  requestCertificate(identity: string, signal?: AbortSignal): Promise<WorkloadCertificate>
  close(): void
}

/** Throws a CertificateError (CA_CONFIGURATION) when the address cannot be used; connects at the first request. */
export function createCaClient(options: CaClientOptions): CaClient {
  const target = targetOf(options.address)
  let channel: (Channel & { readonly rootsPem: string }) | undefined
  let isClosed = false

  async function currentClient(): Promise<Client> {
    let rootsPem: string
    try {
      rootsPem = await readRoots(options.roots)
    } catch (cause) {
      if (channel === undefined) throw cause
      options.warn?.(`keeping the roots of the CA channel: ${cause instanceof Error ? cause.message : cause}`)
      rootsPem = channel.rootsPem
    }
    if (isClosed) throw new CertificateError('CLOSED', 'the CA client is closed')
    if (channel?.rootsPem === rootsPem) return channel.client
    const opened = openChannel(target, rootsPem, options)
    channel?.close()
    channel = { ...opened, rootsPem }
    return channel.client
  }

  function close(): void {
    isClosed = true
    channel?.close()
    channel = undefined
  }

  return {
    async requestCertificate(identity, signal) {
      signal?.throwIfAborted()
      const { csrPem, privateKeyPem } = await createCertificateRequest(identity)
      const metadata = await requestMetadata(options)
      const client = await currentClient()
      const request = create(ca.IstioCertificateRequestSchema, {
        csr: csrPem,
        validityDuration: BigInt(Math.round(options.validitySeconds ?? 0)),
        ...(options.impersonate ? { metadata: { ImpersonatedIdentity: identity } } : {}),
      })
      const { certChain } = await call(client, request, metadata, options.timeoutMs ?? 30_000, signal)
      return certificateFromAnswer({
        identity,
        privateKeyPem,
        chain: certChain,
        checkIdentity: options.impersonate,
        ...(options.warn ? { warn: options.warn } : {}),
      })
    },
    close,
    async [Symbol.asyncDispose]() {
      close()
    },
  }
}

function targetOf(address: string): string {
  const url = URL.parse(address.includes('://') ? address : `https://${address}`)
  if (url === null || url.hostname === '' || (url.pathname !== '/' && url.pathname !== '')) {
    throw new CertificateError('CA_CONFIGURATION', `invalid CA address '${address}': expected https://host:port`)
  }
  if (url.protocol !== 'https:') {
    throw new CertificateError('CA_CONFIGURATION', `invalid CA address '${address}': a token is only sent over https`)
  }
  return `${url.hostname}:${url.port === '' ? 443 : url.port}`
}

async function readRoots(roots: ChannelRoots): Promise<string> {
  if (roots.kind === 'system') return getCACertificates('system').join('\n')
  const pem = roots.kind === 'pem' ? roots.pem : await readRootFile(roots.path)
  if (certificateBlocks(pem).length > 0) return pem
  const where = roots.kind === 'pem' ? 'the given text' : roots.path
  throw new CertificateError(
    'CA_CONFIGURATION',
    `no root certificate for the CA channel: ${where} holds no PEM certificate`,
  )
}

async function readRootFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw new CertificateError('CA_CONFIGURATION', `no root certificate for the CA channel: cannot read ${path}`, {
      cause,
    })
  }
}

interface Channel {
  readonly client: Client
  close(): void
}

function openChannel(target: string, rootsPem: string, options: CaClientOptions): Channel {
  const checkServerIdentity = acceptServerNames(options.alternativeHostname)
  const channelCredentials = new AbandonableCredentials(
    credentials.createSsl(Buffer.from(rootsPem), null, null, { checkServerIdentity }),
    options.handshakeTimeoutMs ?? 10_000,
  )
  const client = new Client(target, channelCredentials, {
    'grpc.keepalive_time_ms': 300_000,
    // The certificates' owner spaces its retries itself; a longer pause here would only hide the CA's return.
    'grpc.initial_reconnect_backoff_ms': 500,
    'grpc.max_reconnect_backoff_ms': 5_000,
  })
  return {
    client,
    close() {
      client.close()
      channelCredentials.abandon()
    },
  }
}

async function requestMetadata(options: CaClientOptions): Promise<Metadata> {
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(options.headers ?? {})) metadata.set(name, value)
  if (options.clusterId !== undefined) metadata.set('clusterid', options.clusterId)
  let token: string | undefined
  try {
    token = await options.token?.()
  } catch (cause) {
    throw new CertificateError('CA_CONFIGURATION', 'no token for the CA request', { cause })
  }
  if (token !== undefined) metadata.set('authorization', `Bearer ${token.trim()}`)
  return metadata
}

function call(
  client: Client,
  request: ca.IstioCertificateRequest,
  metadata: Metadata,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<ca.IstioCertificateResponse> {
  const { path, requestSerialize, responseDeserialize } = certificateServiceDefinition.CreateCertificate
  return new Promise((resolve, reject) => {
    const pending = client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      metadata,
      { deadline: Date.now() + timeoutMs },
      (error, response) => {
        signal?.removeEventListener('abort', cancel)
        if (error !== null) reject(callError(error))
        else if (response === undefined) reject(new CertificateError('CA_ANSWER', 'the CA answered with no message'))
        else resolve(response)
      },
    )
    const cancel = (): void => pending.cancel()
    signal?.addEventListener('abort', cancel, { once: true })
    if (signal?.aborted) cancel()
  })
}

function callError(cause: ServiceError): CertificateError {
  const name = (status[cause.code] ?? 'UNKNOWN')
    .split('_')
    .map((word) => word.charAt(0) + word.slice(1).toLowerCase())
    .join('')
  return new CertificateError('CA_CALL', `signing gRPC error (${name}): ${cause.details}`, { cause })
}
