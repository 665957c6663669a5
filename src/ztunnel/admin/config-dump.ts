// GET /config_dump: everything the proxy knows, as `istioctl ztunnel-config` reads it.
import { X509Certificate } from 'node:crypto'
import type { WorkloadCertificate } from '../certificates/index.ts'
import type { LiveConnection } from '../dataplane/index.ts'
import type { PodInfo } from '../model.ts'
import { dumpLocalContent, dumpState, formatAddress, type LocalContent, type MeshView } from '../state/index.ts'

/** One identity and its certificate, as their owner lists them. */
export interface CertificateListing {
  readonly identity: string
  readonly state: 'Initializing' | 'Available' | 'Unavailable'
  readonly error?: { readonly message: string }
  readonly certificate?: WorkloadCertificate
}

/** One pod of the node and its connections. */
export interface PodListing {
  readonly uid: string
  readonly pod: PodInfo
  readonly state: 'Up' | 'Pending'
  readonly connections: readonly LiveConnection[]
}

/** The pods of the node, as far as the data plane tells in time. */
export interface PodsListing {
  readonly pods: readonly PodListing[]
  /** Workers that did not answer in time, whose connections are missing. */
  readonly silentWorkers: readonly number[]
}

export interface VersionFacts {
  readonly version: string
  readonly gitRevision: string
  readonly istioVersion: string
}

export interface ConfigDumpSources {
  readonly view: MeshView
  readonly version: VersionFacts
  /** The effective configuration, without secrets. */
  readonly config: Readonly<Record<string, unknown>>
  readonly localContent?: LocalContent
  readonly certificates: () => readonly CertificateListing[]
  /** Shared mode only. */
  readonly pods?: () => Promise<PodsListing>
}

export async function dumpAll(sources: ConfigDumpSources): Promise<Readonly<Record<string, unknown>>> {
  const { view, version, config, localContent, certificates } = sources
  const listing = await sources.pods?.()
  return {
    ...dumpState(view),
    staticConfig: dumpLocalContent(localContent ?? { workloads: [], services: [], policies: [] }),
    version: dumpVersion(version),
    config,
    certificates: certificates().map(dumpCertificate),
    ...(listing === undefined ? {} : { workloadState: dumpPods(listing.pods), ...silence(listing) }),
  }
}

/** What runs here; the names of the slots are those dashboards know. */
export function dumpVersion({ version, gitRevision, istioVersion }: VersionFacts): Readonly<Record<string, string>> {
  const { node, openssl } = process.versions
  return {
    version,
    gitRevision,
    rustVersion: `node ${node}`,
    buildProfile: 'release',
    buildStatus: 'Clean',
    istioVersion,
    cryptoProvider: `openssl ${openssl}`,
  }
}

/** The same on one line, as `version` prints it. */
export function formatBuildInfo(facts: VersionFacts): string {
  const fields = Object.entries(dumpVersion(facts)).map(
    ([key, value]) => `${key.charAt(0).toUpperCase()}${key.slice(1)}:${JSON.stringify(value)}`,
  )
  return `version.BuildInfo{${fields.join(', ')}}`
}

const silence = ({ silentWorkers }: PodsListing) =>
  silentWorkers.length === 0 ? {} : { workersWithoutAnswer: silentWorkers.map((worker) => `worker ${worker}`) }

/** By uid: `{state, connections, info}`. */
export function dumpPods(pods: readonly PodListing[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    pods.map(({ uid, pod, state, connections }) => {
      const { name, namespace, serviceAccount } = pod
      const shown = connections.length === 0 ? {} : { connections: dumpConnections(connections) }
      return [uid, { state, ...shown, info: { name, namespace, serviceAccount } }]
    }),
  )
}

function dumpConnections(connections: PodListing['connections']): unknown {
  const ofDirection = (direction: 'inbound' | 'outbound'): unknown[] =>
    connections
      .filter((one) => one.direction === direction)
      .map(({ from, originalDestination, actualDestination, protocol }) => ({
        src: formatAddress(from),
        originalDst: originalDestination ?? null,
        actualDst: formatAddress(actualDestination),
        protocol,
      }))
  return { inbound: ofDirection('inbound'), outbound: ofDirection('outbound') }
}

function dumpCertificate({ identity, state, error, certificate }: CertificateListing): unknown {
  const chain = certificate === undefined ? [] : [certificate.leaf, ...certificate.intermediates]
  return {
    identity,
    state: state === 'Unavailable' ? `Unavailable: ${error?.message ?? 'unknown'}` : state,
    certChain: chain.map(describeCertificate),
    rootCerts: (certificate?.roots ?? []).map(describeCertificate),
  }
}

function describeCertificate(pem: string): unknown {
  const { serialNumber, validFromDate, validToDate } = new X509Certificate(pem)
  return {
    pem: Buffer.from(pem).toString('base64'),
    serialNumber: BigInt(`0x${serialNumber}`).toString(),
    validFrom: toSeconds(validFromDate),
    expirationTime: toSeconds(validToDate),
  }
}

const toSeconds = (time: Date): string => time.toISOString().replace(/\.\d+Z$/, 'Z')
