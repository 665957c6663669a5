// The certificate authority of this control plane: plugged-in files if there are any, else a self-signed root kept in a Secret.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  caSourceOf,
  createAuthority,
  followCaDirectory,
  loadOrCreateSelfSigned,
  pluggedMaterial,
  readCaDirectory,
  runRootRotator,
  type SelfAuthority,
  type SelfSigned,
} from '../ca/index.ts'
import type { KubeClient } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import { secretStore } from './secret-store.ts'
import type { DiscoverySettings } from './settings.ts'

export interface OpenAuthority {
  readonly authority: SelfAuthority
  /** Keeps the material current until the signal aborts: follows changed files, or what another replica put into the Secret. */
  follow(signal: AbortSignal): Promise<void>
  /** Renews a self-signed root in time: the leader's work. */
  rotate(signal: AbortSignal): Promise<void>
}

const retryMs = 1_000
const hourSeconds = 3_600
const graceRatio = 0.2

/** Tries until the API server answers. Rejects for files that cannot be used, and when the signal aborts. */
export async function openAuthority(
  client: KubeClient,
  settings: DiscoverySettings,
  trustDomain: string,
  log: Scope,
  signal: AbortSignal,
): Promise<OpenAuthority> {
  const lifetimes = {
    defaultTtlSeconds: settings.defaultWorkloadTtlSeconds,
    maxTtlSeconds: settings.maxWorkloadTtlSeconds,
  }
  const files = await readCaDirectory(settings.caDir)
  const source = caSourceOf(Object.keys(files))
  if (source.kind === 'plugged') {
    const authority = createAuthority({ material: pluggedMaterial(files, source.layout, new Date()), ...lifetimes })
    log.info('signing with the plugged-in certificate', { dir: settings.caDir })
    const options = {
      dir: settings.caDir,
      authority,
      isMultiRoot: false,
      onReload: () => log.info('the signing certificate was reloaded', { dir: settings.caDir }),
      onRefusal: (error: unknown) => log.error('changed signing files are refused', { reason: textOf(error) }),
    }
    return { authority, follow: (until) => followCaDirectory(options, until), rotate: async () => {} }
  }

  const store = secretStore(client, settings.namespace)
  const extraRoots = files['root-cert.pem'] ?? ''
  const selfSigned = await retrying(
    () =>
      loadOrCreateSelfSigned(store, {
        organization: trustDomain,
        ttlSeconds: settings.caTtlSeconds,
        rsaKeyBits: settings.caRsaBits,
        extraRoots,
      }),
    log,
    signal,
  )
  const { material, secretName } = selfSigned
  const authority = createAuthority({ material, ...lifetimes })
  log.info('signing with the root of a Secret', { secret: `${settings.namespace}/${secretName}` })
  const rotation = {
    store,
    secretName,
    authority,
    ttlSeconds: settings.caTtlSeconds,
    organization: trustDomain,
    extraRoots,
    checkIntervalSeconds: hourSeconds,
    onOutcome: (outcome: { readonly kind: string; readonly error?: unknown }) => {
      if (outcome.kind === 'failed') log.error('the root could not be checked', { reason: textOf(outcome.error) })
      else if (outcome.kind !== 'unchanged') log.info('the root was checked', { outcome: outcome.kind })
    },
  }
  return {
    authority,
    // A ratio of 0 never renews: it only takes over what the leader wrote.
    follow: (until) => runRootRotator({ ...rotation, graceRatio: 0, checkIntervalSeconds: 60 }, until),
    rotate: (until) => (selfSigned.isManaged ? runRootRotator({ ...rotation, graceRatio }, until) : Promise.resolve()),
  }
}

async function retrying(work: () => Promise<SelfSigned>, log: Scope, signal: AbortSignal): Promise<SelfSigned> {
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
