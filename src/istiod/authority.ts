// The certificate authority of this control plane: another signer of the cluster if one is named, else plugged-in material if there
// is any, else a self-signed root kept in a Secret.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type CaFiles,
  type CaSource,
  type CertificateAuthority,
  caSourceOf,
  createAuthority,
  followCaFiles,
  loadOrCreateSelfSigned,
  pluggedMaterial,
  pluggedSecretName,
  readCaDirectory,
  runRootRotator,
  type SelfAuthority,
  type ServingCertificate,
  type SigningRequest,
  selfSignedSecretName,
} from '../ca/index.ts'
import type { MeshConfig } from '../config/index.ts'
import type { KubeClient } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import { type ClusterServing, servingFromCluster } from './cluster-serving.ts'
import { openRegistration, rootsOfSigners } from './registration.ts'
import { secretStore } from './secret-store.ts'
import type { DiscoverySettings } from './settings.ts'
import { signThroughRequests } from './signing-requests.ts'

/** What the rest of the control plane asks of the authority, whoever signs. */
export interface MeshAuthority extends Omit<CertificateAuthority, 'sign'> {
  /** `requestedSigner`: the signer that the request names, or empty. */
  sign(request: SigningRequest, requestedSigner?: string): Promise<readonly string[]>
  issueServingCertificate(names: readonly string[], ttlSeconds: number): Promise<ServingCertificate>
  /** The ends of the first root and of the signing chain, as far as they are known. */
  readonly expiry: { readonly root: Date; readonly chain: Date } | undefined
  /** Revocations to be handed out, PEM. */
  readonly crl: string | undefined
}

export interface OpenAuthority {
  readonly authority: MeshAuthority
  /** Keeps the material current until the signal aborts: follows changed files, or what another replica put into the Secret. */
  follow(signal: AbortSignal): Promise<void>
  /** Renews a self-signed root in time: the leader's work. */
  rotate(signal: AbortSignal): Promise<void>
}

export interface AuthorityContext {
  readonly client: KubeClient
  readonly settings: DiscoverySettings
  readonly mesh: () => MeshConfig
  readonly log: Scope
}

const retryMs = 1_000
const directoryIntervalMs = 1_000
const secretIntervalMs = 10_000
/** Replicas take over a root that the leader wrote: often compared with how long it is announced. */
const mostTakeOverSeconds = 60

/** Tries until the API server answers. Rejects for files that cannot be used, and when the signal aborts. */
export async function openAuthority(context: AuthorityContext, signal: AbortSignal): Promise<OpenAuthority> {
  const { client, settings, log } = context
  const { certificates } = settings
  const lifetimes = {
    defaultTtlSeconds: settings.defaultWorkloadTtlSeconds,
    maxTtlSeconds: settings.maxWorkloadTtlSeconds,
  }
  if (certificates.signer.kind === 'kubernetes') {
    const signInCluster = signThroughRequests(client, signal)
    const { signer } = certificates
    return openRegistration({ signer, certificates, ...lifetimes, mesh: context.mesh, signInCluster, log })
  }
  const own = await openOwn(context, lifetimes, signal)
  if (certificates.servingSigner === '') return own
  const serving = servingFromCluster({
    signInCluster: signThroughRequests(client, signal),
    signerName: certificates.servingSigner,
    rootsOf: rootsOfSigners(certificates, context.mesh),
    maxTtlSeconds: lifetimes.maxTtlSeconds,
  })
  return withServing(own, serving)
}

/** The same authority, but our own certificate is signed by another. */
function withServing(own: OpenAuthority, serving: ClusterServing): OpenAuthority {
  const { authority } = own
  const listeners = new Set<() => void>()
  const due = (): void => {
    for (const listener of [...listeners]) listener()
  }
  return {
    ...own,
    authority: {
      sign: authority.sign,
      issueServingCertificate: serving.issue,
      subscribe(listener) {
        const end = authority.subscribe(listener)
        listeners.add(listener)
        return () => {
          end()
          listeners.delete(listener)
        }
      },
      get rootBundle() {
        return authority.rootBundle
      },
      get expiry() {
        return authority.expiry
      },
      get crl() {
        return authority.crl
      },
    },
    async follow(until) {
      await Promise.all([own.follow(until), serving.follow(due, until)])
    },
  }
}

async function openOwn(
  context: AuthorityContext,
  lifetimes: { readonly defaultTtlSeconds: number; readonly maxTtlSeconds: number },
  signal: AbortSignal,
): Promise<OpenAuthority> {
  const { log, settings } = context
  const { certificates } = settings
  const { files, source, origin, read, intervalMs } = await findFiles(context, signal)
  if (source.kind === 'self-signed') return openSelfSigned(context, files['root-cert.pem'] ?? '', lifetimes, signal)
  const authority = createAuthority({ material: pluggedMaterial(files, source.layout, new Date()), ...lifetimes })
  log.info('signing with the plugged-in certificate', { from: origin })
  warnOfOwnRoot(context)
  return {
    authority: meshAuthority(authority),
    follow: (until) =>
      followCaFiles(
        {
          read,
          intervalMs,
          authority,
          isMultiRoot: certificates.isMultiRoot,
          onReload: () => log.info('the signing certificate was reloaded', { from: origin }),
          onRefusal: (error) => log.error('changed signing material is refused', { reason: textOf(error) }),
        },
        until,
      ),
    rotate: async () => {},
  }
}

/** A root of our own beside plugged-in material is no longer used: what it signed is not trusted by what is signed now. */
function warnOfOwnRoot({ client, settings, log }: AuthorityContext): void {
  const { namespace } = settings
  secretStore(client, namespace)
    .read(selfSignedSecretName)
    .then(
      (secret) => {
        if (secret === undefined) return
        log.warn('a root of our own is there, too; the plugged-in one signs', {
          secret: `${namespace}/${selfSignedSecretName}`,
        })
      },
      (error: unknown) => log.debug('the Secret of a root of our own could not be read', { reason: textOf(error) }),
    )
}

interface FoundFiles {
  readonly files: CaFiles
  readonly source: CaSource
  readonly origin: string
  readonly read: () => Promise<CaFiles>
  readonly intervalMs: number
}

/** The mounted directory, or the Secret where that is asked for and nothing is mounted. What the Secret holds stays in memory. */
async function findFiles({ client, settings, log }: AuthorityContext, signal: AbortSignal): Promise<FoundFiles> {
  const { caDir, certificates, namespace } = settings
  const read = () => readCaDirectory(caDir)
  const files = await read()
  const source = caSourceOf(Object.keys(files), certificates.keepsInCacerts)
  const mounted = { files, source, origin: caDir, read, intervalMs: directoryIntervalMs }
  if (source.kind === 'plugged' || !certificates.readsSecret) return mounted
  const store = secretStore(client, namespace)
  const readSecret = async (): Promise<CaFiles> => (await store.read(pluggedSecretName))?.data ?? {}
  const held = await retrying(readSecret, log, signal)
  const heldSource = caSourceOf(Object.keys(held), certificates.keepsInCacerts)
  if (heldSource.kind === 'self-signed') return mounted
  const origin = `Secret ${namespace}/${pluggedSecretName}`
  return { files: held, source: heldSource, origin, read: readSecret, intervalMs: secretIntervalMs }
}

async function openSelfSigned(
  { client, settings, mesh, log }: AuthorityContext,
  extraRoots: string,
  lifetimes: { readonly defaultTtlSeconds: number; readonly maxTtlSeconds: number },
  signal: AbortSignal,
): Promise<OpenAuthority> {
  const { certificates } = settings
  const store = secretStore(client, settings.namespace)
  const organization = mesh().trustDomain
  const load = () =>
    loadOrCreateSelfSigned(store, {
      organization,
      ttlSeconds: settings.caTtlSeconds,
      rsaKeyBits: settings.caRsaBits,
      useCacerts: certificates.keepsInCacerts,
      extraRoots,
    })
  const { material, secretName, isManaged } = await retrying(load, log, signal)
  const authority = createAuthority({ material, ...lifetimes })
  log.info('signing with the root of a Secret', { secret: `${settings.namespace}/${secretName}` })
  const rotation = {
    store,
    secretName,
    authority,
    ttlSeconds: settings.caTtlSeconds,
    organization,
    extraRoots,
    hasJitter: certificates.rootCheckHasJitter,
    checkIntervalSeconds: certificates.rootCheckSeconds,
    ...(certificates.rootOverlapSeconds === undefined ? {} : { overlapSeconds: certificates.rootOverlapSeconds }),
    onOutcome: (outcome: { readonly kind: string; readonly error?: unknown }) => {
      if (outcome.kind === 'failed') log.error('the root could not be checked', { reason: textOf(outcome.error) })
      else if (outcome.kind !== 'unchanged') log.info('the root was checked', { outcome: outcome.kind })
    },
  }
  const takeOverSeconds = Math.min(certificates.rootCheckSeconds, mostTakeOverSeconds)
  return {
    authority: meshAuthority(authority),
    // Renewing is the leader's.
    follow: (until) =>
      runRootRotator({ ...rotation, graceRatio: undefined, checkIntervalSeconds: takeOverSeconds }, until),
    rotate: (until) =>
      isManaged ? runRootRotator({ ...rotation, graceRatio: certificates.rootGraceRatio }, until) : Promise.resolve(),
  }
}

function meshAuthority(authority: SelfAuthority): MeshAuthority {
  return {
    sign: (request) => authority.sign(request),
    issueServingCertificate: authority.issueServingCertificate,
    subscribe: authority.subscribe,
    get rootBundle() {
      return authority.rootBundle
    },
    get expiry() {
      return { root: authority.material.rootNotAfter, chain: authority.material.notAfter }
    },
    get crl() {
      return authority.material.crl
    },
  }
}

async function retrying<T>(work: () => Promise<T>, log: Scope, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      log.warn('the signing material is not available yet', { reason: textOf(error) })
    }
    await sleep(retryMs, undefined, { signal })
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
