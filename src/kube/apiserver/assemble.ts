// Puts the whole embedded API together for a state directory: PKI, kinds, authentication, CRDs, admission, OpenAPI.
import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { loadKubernetesKinds } from '../../api/index.ts'
import { createAdmissionExtension } from './admission/index.ts'
import { adminKubeconfig, createAuthExtension, loadPki } from './auth/index.ts'
import { createCustomResourceExtension } from './crd/index.ts'
import { createOpenApiExtension } from './openapi/index.ts'
import { type ApiServer, startApiServer } from './server.ts'
import { firstAddressOf } from './services/addresses.ts'

export interface EmbeddedApiOptions {
  /** Holds `apiserver.db`, `pki/` and `kubeconfig`; made when it does not exist. */
  readonly stateDir: string
  readonly listen: readonly { readonly host: string; readonly port: number }[]
  readonly serviceCidr: string
  /** The address that pods are sent to for the Service `kubernetes`; by default the first listen address. */
  readonly advertiseAddress?: string
  readonly onError: (error: unknown) => void
}

export interface EmbeddedApi extends ApiServer {
  /** The administrator's kubeconfig, for the first listen address. */
  readonly kubeconfig: string
}

/** Resolves when requests are served and the kubeconfig is written. */
export async function startEmbeddedApi(options: EmbeddedApiOptions): Promise<EmbeddedApi> {
  const { stateDir, listen, serviceCidr, advertiseAddress, onError } = options
  mkdirSync(stateDir, { recursive: true, mode: 0o700 })
  const [first] = listen
  if (first === undefined) throw new Error('name at least one address to listen on')
  const hosts = listen.flatMap(({ host }) => reachableHosts(host))
  const ownHost = clientHost(first.host)
  const pki = await loadPki({
    directory: join(stateDir, 'pki'),
    addresses: [...hosts, firstAddressOf(serviceCidr), ...(advertiseAddress === undefined ? [] : [advertiseAddress])],
  })
  const server = await startApiServer({
    database: join(stateDir, 'apiserver.db'),
    identity: pki,
    listen,
    serviceCidr,
    advertiseAddress: advertiseAddress ?? ownHost,
    kinds: await loadKubernetesKinds(),
    extensions: [
      createAdmissionExtension(),
      createAuthExtension({ pki, externalUrl: `https://${bracketed(ownHost)}:${first.port}` }),
      createCustomResourceExtension(),
      createOpenApiExtension(),
    ],
    onError,
  })
  const port = server.addresses[0]?.port ?? first.port
  const kubeconfig = join(stateDir, 'kubeconfig')
  writeWhole(kubeconfig, adminKubeconfig(pki, `https://${bracketed(ownHost)}:${port}`))
  return { ...server, kubeconfig, [Symbol.asyncDispose]: server[Symbol.asyncDispose] }
}

/** A reader sees the old file or the new one, never a part. */
function writeWhole(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 })
  chmodSync(`${path}.new`, 0o600)
  renameSync(`${path}.new`, path)
}

function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

function reachableHosts(host: string): string[] {
  if (!isWildcard(host)) return [host]
  return Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => address))
}

function clientHost(host: string): string {
  if (!isWildcard(host)) return host
  return host === '::' ? '::1' : '127.0.0.1'
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
