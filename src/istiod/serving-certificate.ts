// The certificate of the TLS port: from files if they are named or at their usual place, else from our own CA. Followed while the process runs.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync, unwatchFile, watchFile } from 'node:fs'
import { type ServingCertificate, servingNames } from '../ca/index.ts'
import type { Scope } from '../observability/index.ts'
import { mergeBundles } from '../util/index.ts'
import type { MeshAuthority } from './authority.ts'
import { type DiscoverySettings, SettingError } from './settings.ts'

export interface FollowedServingCertificate extends Disposable {
  readonly current: ServingCertificate
  subscribe(listener: (certificate: ServingCertificate) => void): void
}

interface Files {
  readonly cert: string
  readonly key: string
  readonly ca: string
}

const servingTtlSeconds = 3650 * 86_400
const usualCert = './var/run/secrets/istiod/tls/tls.crt'
const usualKey = './var/run/secrets/istiod/tls/tls.key'
const usualRoots = ['./var/run/secrets/istiod/ca/root-cert.pem', './var/run/secrets/istiod/tls/ca.crt']

type Issuer = Pick<MeshAuthority, 'issueServingCertificate' | 'subscribe' | 'rootBundle'>
type Settings = Pick<DiscoverySettings, 'serving' | 'namespace' | 'customHosts' | 'revision' | 'certificates'>

export async function followServingCertificate(
  settings: Settings,
  authority: Issuer,
  discoveryAddress: string,
  log: Scope,
): Promise<FollowedServingCertificate> {
  const files = servingFiles(settings)
  if (files !== undefined) return fromFiles(files, authority, log)
  if (settings.certificates.issuesServing) return fromAuthority(settings, authority, discoveryAddress, log)
  throw new SettingError(
    `PILOT_CERT_PROVIDER: no certificate is made for us, and there is none at ${usualCert} nor one that --tlsCertFile names`,
  )
}

/** Clients may show certificates of the mesh, whoever signed ours. */
function withMeshRoots(certificate: ServingCertificate, { rootBundle }: Issuer): ServingCertificate {
  return { ...certificate, roots: mergeBundles(certificate.roots, rootBundle) }
}

/** The files in use; undefined when there are none. */
function servingFiles({ serving }: Settings): Files | undefined {
  if (serving.certFile !== '') return { cert: serving.certFile, key: serving.keyFile, ca: serving.caFile }
  const ca = usualRoots.find((path) => existsSync(path))
  if (ca === undefined || !existsSync(usualCert) || !existsSync(usualKey)) return undefined
  return { cert: usualCert, key: usualKey, ca }
}

function fromFiles(files: Files, authority: Issuer, log: Scope): FollowedServingCertificate {
  const listeners = new Set<(certificate: ServingCertificate) => void>()
  let current: ServingCertificate
  try {
    current = withMeshRoots(readServingFiles(files), authority)
  } catch (cause) {
    throw new SettingError(`the serving certificate cannot be used: ${textOf(cause)}`, { cause })
  }
  log.info('serving with the certificate of files', { cert: files.cert })
  const reread = (): void => {
    try {
      const next = withMeshRoots(readServingFiles(files), authority)
      if (next.chain === current.chain && next.privateKey === current.privateKey && next.roots === current.roots) return
      current = next
      for (const listener of listeners) listener(next)
      log.info('the serving certificate was reloaded', { cert: files.cert })
    } catch (error) {
      // Certificate and key are replaced one after the other: the next look finds both.
      log.warn('changed serving files are not usable; the last ones stay', { reason: textOf(error) })
    }
  }
  const paths = Object.values(files)
  const unsubscribe = authority.subscribe(reread)
  for (const path of paths) watchFile(path, { interval: 1_000, persistent: false }, reread)
  return {
    get current() {
      return current
    },
    subscribe: (listener) => void listeners.add(listener),
    [Symbol.dispose]() {
      unsubscribe()
      for (const path of paths) unwatchFile(path, reread)
    },
  }
}

/** Throws when the files do not belong together or are out of date. */
export function readServingFiles(files: Files): ServingCertificate {
  const chain = readFileSync(files.cert, 'utf8')
  const privateKey = readFileSync(files.key, 'utf8')
  const roots = readFileSync(files.ca, 'utf8')
  const leaf = new X509Certificate(chain)
  new X509Certificate(roots)
  if (!leaf.checkPrivateKey(createPrivateKey(privateKey)))
    throw new Error(`${files.key} is not the key of ${files.cert}`)
  if (leaf.validToDate.getTime() < Date.now()) throw new Error(`${files.cert} expired at ${leaf.validTo}`)
  return { privateKey, chain, roots, notAfter: leaf.validToDate }
}

async function fromAuthority(
  settings: Settings,
  authority: Issuer,
  discoveryAddress: string,
  log: Scope,
): Promise<FollowedServingCertificate> {
  const names = servingNames({
    namespace: settings.namespace,
    discoveryAddress,
    customHosts: settings.customHosts,
    revision: settings.revision,
  })
  const listeners = new Set<(certificate: ServingCertificate) => void>()
  const issue = async () => withMeshRoots(await authority.issueServingCertificate(names, servingTtlSeconds), authority)
  let current = await issue()
  const unsubscribe = authority.subscribe(() => {
    issue().then(
      (next) => {
        current = next
        for (const listener of listeners) listener(next)
      },
      (error: unknown) => log.error('the serving certificate could not be renewed', { reason: textOf(error) }),
    )
  })
  log.info('serving with a certificate made for us', { names: names.join(' ') })
  return {
    get current() {
      return current
    },
    subscribe: (listener) => void listeners.add(listener),
    [Symbol.dispose]: unsubscribe,
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
