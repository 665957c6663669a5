// The API server's keys and certificates, written once below the state directory and read again at the next start.
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ServerIdentity } from '../types.ts'
import { createAuthority, createLeaf, isUsable, type KeyPair, type LeafOptions, publicKeyOf } from './certificates.ts'

export interface PkiOptions {
  readonly directory: string
  /** Addresses and names that clients use for this server, besides `kubernetes.default.svc` and localhost. */
  readonly addresses: readonly string[]
  readonly clusterDomain?: string
}

export interface Pki extends ServerIdentity {
  readonly authority: KeyPair
  /** A client certificate of group system:masters. */
  readonly admin: KeyPair
  /** Signs service account tokens: RSA, PEM PKCS #8. */
  readonly serviceAccountKey: string
}

/** Reads the keys and certificates of the directory; makes what is missing, outdated or lacks an address. */
export async function loadPki(options: PkiOptions): Promise<Pki> {
  const { directory } = options
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const authority = await loadAuthority(directory)
  const [serving, kubeletClient, admin] = await Promise.all([
    loadLeaf(directory, 'apiserver', authority, servingOptions(options)),
    loadLeaf(directory, 'apiserver-kubelet-client', authority, {
      commonName: 'kube-apiserver-kubelet-client',
      organizations: ['system:masters'],
      usage: 'client',
    }),
    loadLeaf(directory, 'admin', authority, {
      commonName: 'kubernetes-admin',
      organizations: ['system:masters'],
      usage: 'client',
    }),
  ])
  return {
    authority,
    serving,
    admin,
    clientCa: authority.certificate,
    kubeletClient: { ...kubeletClient, ca: authority.certificate },
    serviceAccountKey: loadServiceAccountKey(directory),
  }
}

function servingOptions({ addresses, clusterDomain = 'cluster.local' }: PkiOptions): LeafOptions {
  const all = [...new Set(['127.0.0.1', '::1', ...addresses])]
  const isAddress = (name: string): boolean => /^[\d.]+$/.test(name) || name.includes(':')
  return {
    commonName: 'kube-apiserver',
    usage: 'server',
    names: {
      dns: [
        'kubernetes',
        'kubernetes.default',
        'kubernetes.default.svc',
        `kubernetes.default.svc.${clusterDomain}`,
        'localhost',
        ...all.filter((name) => !isAddress(name)),
      ],
      ips: all.filter(isAddress),
    },
  }
}

async function loadAuthority(directory: string): Promise<KeyPair> {
  const existing = readPair(directory, 'ca')
  if (existing !== undefined) return existing
  const created = await createAuthority('kubernetes')
  writePair(directory, 'ca', created)
  return created
}

async function loadLeaf(directory: string, name: string, authority: KeyPair, options: LeafOptions): Promise<KeyPair> {
  const existing = readPair(directory, name)
  if (existing !== undefined && isUsable(existing.certificate, authority, options.names ?? {})) return existing
  const created = await createLeaf(authority, options)
  writePair(directory, name, created)
  return created
}

function loadServiceAccountKey(directory: string): string {
  const path = join(directory, 'sa.key')
  if (existsSync(path)) {
    const key = readFileSync(path, 'utf8')
    createPublicKey(key)
    return key
  }
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  writeWhole(path, privateKey, 0o600)
  writeWhole(join(directory, 'sa.pub'), publicKeyOf(privateKey), 0o644)
  return privateKey
}

function readPair(directory: string, name: string): KeyPair | undefined {
  const [certificate, key] = [join(directory, `${name}.crt`), join(directory, `${name}.key`)]
  if (!existsSync(certificate) || !existsSync(key)) return undefined
  return { certificate: readFileSync(certificate, 'utf8'), key: readFileSync(key, 'utf8') }
}

/** The key first: a certificate without its key is made anew at the next start. */
function writePair(directory: string, name: string, pair: KeyPair): void {
  writeWhole(join(directory, `${name}.key`), pair.key, 0o600)
  writeWhole(join(directory, `${name}.crt`), pair.certificate, 0o644)
}

/** A reader sees the old file or the whole new one, never a part. */
function writeWhole(path: string, text: string, mode: number): void {
  const partial = `${path}.partial`
  writeFileSync(partial, text, { mode })
  chmodSync(partial, mode)
  renameSync(partial, path)
}
