// Our own serving certificate, signed by a signer of the cluster, looked at, and renewed at half of its life.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  chainWithRoot,
  createServingRequest,
  type ServingCertificate,
  type SignInCluster,
  SigningError,
} from '../ca/index.ts'

export interface ClusterServingOptions {
  readonly signInCluster: SignInCluster
  readonly signerName: string
  /** The roots that are configured for a signer, PEM; empty for none. */
  readonly rootsOf: (signerName: string) => string
  readonly maxTtlSeconds: number
}

export interface ClusterServing {
  /** Rejects with a SigningError when what the signer returns is not for our key and these names: clients would refuse us by it. */
  issue(names: readonly string[], ttlSeconds: number): Promise<ServingCertificate>
  /** Calls `due` when the last certificate has to be renewed, until the signal aborts. */
  follow(due: () => void, signal: AbortSignal): Promise<void>
}

const usages = ['digital signature', 'key encipherment', 'server auth']
const retryMs = 10_000
const longestTimerMs = 2 ** 31 - 1

export function servingFromCluster(options: ClusterServingOptions): ClusterServing {
  const { signInCluster, signerName, rootsOf, maxTtlSeconds } = options
  let last: ServingCertificate | undefined
  return {
    async issue(names, ttlSeconds) {
      const { csrPem, privateKey } = await createServingRequest(names)
      const expirationSeconds = Math.min(ttlSeconds, maxTtlSeconds)
      const signed = await signInCluster({ csrPem, signerName, expirationSeconds, usages })
      const chain = chainWithRoot(signed, rootsOf(signerName))
      const leaf = new X509Certificate(chain[0] ?? '')
      checkServing(leaf, privateKey, names)
      last = { privateKey, chain: chain.slice(0, -1).join(''), roots: chain.at(-1) ?? '', notAfter: leaf.validToDate }
      return last
    },
    async follow(due, signal) {
      while (!signal.aborted) {
        const half = last === undefined ? retryMs : (last.notAfter.getTime() - Date.now()) / 2
        try {
          const ms = Math.min(Math.max(half, retryMs), longestTimerMs)
          await sleep(ms, undefined, { signal, ref: false })
        } catch {
          return
        }
        due()
      }
    },
  }
}

function checkServing(leaf: X509Certificate, privateKey: string, names: readonly string[]): void {
  if (!leaf.checkPrivateKey(createPrivateKey(privateKey))) {
    throw new SigningError('CERT_GEN_ERROR', 'the signer has certified another key than ours')
  }
  const missing = names.filter((name) => leaf.checkHost(name, { subject: 'never' }) === undefined)
  if (missing.length === 0) return
  throw new SigningError('CERT_GEN_ERROR', `the signer has certified us without the names ${missing.join(', ')}`)
}
