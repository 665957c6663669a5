// Where an API server is and how to prove who we are: from a kubeconfig file or from inside a pod.
import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { KubeError } from './errors.ts'
import { type ExecPlugin, execCredentials } from './exec-credentials.ts'
import { reread } from './reread.ts'

/** PEM texts of one moment; `undefined` CA means the system's roots. */
export interface TlsMaterial {
  readonly ca: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
}

export interface Connection {
  readonly server: string
  /** The namespace of the kubeconfig's context or of the pod. */
  readonly namespace: string
  readonly insecureSkipTlsVerify: boolean
  /** The name to verify in the server's certificate when it isn't the host of `server`. */
  readonly tlsServerName: string | undefined
  tls(): Promise<TlsMaterial>
  /** The value of the Authorization header; `refused` is the value that the server just answered 401 to. */
  authorization(refused?: string): Promise<string | undefined>
}

const serviceAccountDir = '/var/run/secrets/kubernetes.io/serviceaccount'

/**
 * The connection that kubectl would take: the named kubeconfig, else the one in `KUBECONFIG`, else the pod's service account, else `~/.kube/config`.
 * Rejects with a KubeError (code 0, reason `Config`) that says which file lacks what.
 */
export async function loadConnection(
  options: {
    readonly kubeconfig?: string
    readonly context?: string
    readonly env?: Readonly<Record<string, string | undefined>>
  } = {},
): Promise<Connection> {
  const env = options.env ?? process.env
  if (options.kubeconfig !== undefined && options.kubeconfig !== '') {
    return kubeconfigConnection(options.kubeconfig, options.context)
  }
  const fromEnv = env.KUBECONFIG?.split(':').find((path) => path !== '' && existsSync(path))
  if (fromEnv !== undefined) return kubeconfigConnection(fromEnv, options.context)
  if (env.KUBERNETES_SERVICE_HOST) return inClusterConnection(env)
  const home = join(homedir(), '.kube/config')
  if (existsSync(home)) return kubeconfigConnection(home, options.context)
  throw configError('no API server is configured: give --kubeconfig, set KUBECONFIG, or run inside a pod')
}

/** The connection of a pod: address from the environment, token and CA from the service-account volume, both re-read when they change. */
export function inClusterConnection(
  env: Readonly<Record<string, string | undefined>> = process.env,
  dir = serviceAccountDir,
): Connection {
  const host = env.KUBERNETES_SERVICE_HOST
  if (!host) throw configError('KUBERNETES_SERVICE_HOST is not set: this process does not run inside a pod')
  const port = env.KUBERNETES_SERVICE_PORT_HTTPS ?? env.KUBERNETES_SERVICE_PORT ?? '443'
  const token = reread(join(dir, 'token'))
  const ca = reread(join(dir, 'ca.crt'))
  const namespaceFile = join(dir, 'namespace')
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    namespace: existsSync(namespaceFile) ? readFileSync(namespaceFile, 'utf8').trim() : 'default',
    insecureSkipTlsVerify: false,
    tlsServerName: undefined,
    tls: async () => ({ ca: ca(), cert: undefined, key: undefined }),
    authorization: async (refused) => bearer(token(refused !== undefined)),
  }
}

interface Named<K extends string, V> {
  readonly name: string
  readonly value?: V
  readonly key?: K
}
type KubeconfigList<K extends string, V> = readonly (Named<never, never> & { readonly [P in K]?: V })[]

interface Kubeconfig {
  readonly 'current-context'?: string
  readonly clusters?: KubeconfigList<'cluster', ClusterEntry>
  readonly contexts?: KubeconfigList<'context', ContextEntry>
  readonly users?: KubeconfigList<'user', UserEntry>
}

interface ContextEntry {
  readonly cluster?: string
  readonly user?: string
  readonly namespace?: string
}

interface ClusterEntry {
  readonly server?: string
  readonly 'certificate-authority'?: string
  readonly 'certificate-authority-data'?: string
  readonly 'insecure-skip-tls-verify'?: boolean
  readonly 'tls-server-name'?: string
}

interface UserEntry {
  readonly token?: string
  readonly tokenFile?: string
  readonly username?: string
  readonly password?: string
  readonly 'client-certificate'?: string
  readonly 'client-certificate-data'?: string
  readonly 'client-key'?: string
  readonly 'client-key-data'?: string
  readonly exec?: ExecPlugin
  readonly 'auth-provider'?: { readonly name?: string; readonly config?: Readonly<Record<string, string>> }
}

async function kubeconfigConnection(path: string, contextName?: string): Promise<Connection> {
  const config = await readKubeconfig(path)
  return connectionOfChoice(choose(config, path, contextName), dirname(resolve(path)))
}

/** What a kubeconfig from elsewhere may only use where it is allowed by name: it could run programs or read files here, or skip checks. */
export const riskyKubeconfigOptions = [
  'exec',
  'authProvider',
  'clientKey',
  'clientCertificate',
  'tokenFile',
  'certificateAuthority',
  'insecureSkipTLSVerify',
] as const

/**
 * The connection of a kubeconfig that somebody else wrote, such as one in a Secret. Options with which it could reach into this process
 * or its files are refused unless `allowed` names them. `where` names it in errors. Rejects with a KubeError (code 0, reason `Config`).
 */
export async function connectionOfText(
  text: string,
  where: string,
  allowed: readonly string[] = [],
): Promise<Connection> {
  const choice = chooseOwn(await parseKubeconfig(text, where), where)
  const { cluster, user } = choice
  const used: Readonly<Record<(typeof riskyKubeconfigOptions)[number], boolean>> = {
    exec: user.exec !== undefined,
    authProvider: user['auth-provider'] !== undefined && idTokenOf(user) === undefined,
    clientKey: user['client-key'] !== undefined,
    clientCertificate: user['client-certificate'] !== undefined,
    tokenFile: user.tokenFile !== undefined,
    certificateAuthority: cluster['certificate-authority'] !== undefined,
    insecureSkipTLSVerify: cluster['insecure-skip-tls-verify'] === true,
  }
  const refused = riskyKubeconfigOptions.find((option) => used[option] && !allowed.includes(option))
  if (refused !== undefined) throw configError(`${where}: ${refused} is not allowed`)
  if (used.authProvider) throw configError(`${where}: authProvider: give a token or a client certificate instead`)
  // Credentials would be readable, and so would Secrets.
  const isPlain = cluster.server.startsWith('http://') && allowed.includes('insecureSkipTLSVerify')
  if (!isPlain && !/^https:\/\//.test(cluster.server)) {
    throw configError(`${where}: server: expected https://host:port`)
  }
  return connectionOfChoice(choice, '/')
}

/** The name by which a kubeconfig calls the cluster that it leads to. Rejects with a KubeError (code 0, reason `Config`). */
export async function clusterOfText(text: string, where: string): Promise<string> {
  const config = await parseKubeconfig(text, where)
  const context = contextOf(config)
  const name = context === undefined ? config.clusters?.[0]?.name : chooseContext(config, where, context).cluster
  if (name === undefined || name === '') throw configError(`${where}: there is no cluster`)
  return name
}

/** Without a current context the first by name counts. */
function contextOf(config: Kubeconfig): string | undefined {
  return config['current-context'] || (config.contexts ?? []).map(({ name }) => name).sort()[0]
}

/** What a kubeconfig that is meant for one cluster leads to: without any context its first cluster. */
function chooseOwn(config: Kubeconfig, where: string): Choice {
  const context = contextOf(config)
  if (context !== undefined) return choose(config, where, context)
  const cluster = config.clusters?.[0]?.cluster
  if (cluster?.server === undefined) throw configError(`${where}: there is no cluster with a server`)
  return { cluster: { ...cluster, server: cluster.server }, user: {}, namespace: 'default' }
}

interface Choice {
  readonly cluster: ClusterEntry & { readonly server: string }
  readonly user: UserEntry
  readonly namespace: string
}

function choose(config: Kubeconfig, where: string, contextName?: string): Choice {
  const name = contextName ?? config['current-context'] ?? ''
  const context = chooseContext(config, where, name)
  const cluster = config.clusters?.find((entry) => entry.name === context.cluster)?.cluster
  const server = cluster?.server
  if (cluster === undefined || server === undefined) {
    throw configError(`${where}: context "${name}": cluster "${context.cluster ?? ''}" has no server`)
  }
  const user = config.users?.find((entry) => entry.name === context.user)?.user ?? {}
  return { cluster: { ...cluster, server }, user, namespace: context.namespace ?? 'default' }
}

function chooseContext(config: Kubeconfig, where: string, name: string): ContextEntry {
  const context = config.contexts?.find((entry) => entry.name === name)?.context
  if (context === undefined) throw configError(`${where}: there is no context "${name}"`)
  return context
}

/** `base`: the folder that relative paths start from. */
function connectionOfChoice({ cluster, user, namespace }: Choice, base: string): Connection {
  const ca = material(base, cluster['certificate-authority-data'], cluster['certificate-authority'])
  const cert = material(base, user['client-certificate-data'], user['client-certificate'])
  const key = material(base, user['client-key-data'], user['client-key'])
  const plugin = user.exec === undefined ? undefined : execCredentials(user.exec, base)
  const tokenFile = user.tokenFile === undefined ? undefined : reread(resolve(base, user.tokenFile))
  return {
    server: cluster.server.replace(/\/+$/, ''),
    namespace,
    insecureSkipTlsVerify: cluster['insecure-skip-tls-verify'] === true,
    tlsServerName: cluster['tls-server-name'],
    tls: async () => {
      const issued = await plugin?.(false)
      return { ca: ca(), cert: issued?.clientCertificate ?? cert(), key: issued?.clientKey ?? key() }
    },
    authorization: async (refused) => {
      const token = user.token || idTokenOf(user)
      if (token) return bearer(token)
      if (tokenFile !== undefined) return bearer(tokenFile(refused !== undefined))
      if (user.username !== undefined) {
        return `Basic ${Buffer.from(`${user.username}:${user.password ?? ''}`).toString('base64')}`
      }
      const issued = await plugin?.(refused !== undefined)
      return issued?.token === undefined ? undefined : bearer(issued.token)
    },
  }
}

/** The token that an OIDC provider has issued: it is a token as any other, and lives as long as it says. */
function idTokenOf(user: UserEntry): string | undefined {
  const provider = user['auth-provider']
  return provider?.name === 'oidc' ? provider.config?.['id-token'] : undefined
}

async function readKubeconfig(path: string): Promise<Kubeconfig> {
  try {
    return await parseKubeconfig(readFileSync(path, 'utf8'), path)
  } catch (cause) {
    if (cause instanceof KubeError) throw cause
    const why = (cause as NodeJS.ErrnoException).code === 'ENOENT' ? 'there is no such file' : textOf(cause)
    throw configError(`${path}: ${why}`, cause)
  }
}

async function parseKubeconfig(text: string, where: string): Promise<Kubeconfig> {
  try {
    const { parse } = await import('yaml')
    const value: unknown = parse(text)
    if (typeof value !== 'object' || value === null) throw new Error('it is not a mapping')
    return value
  } catch (cause) {
    throw configError(`${where}: ${textOf(cause)}`, cause)
  }
}

function textOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}

function material(base: string, inline: string | undefined, file: string | undefined): () => string | undefined {
  if (inline !== undefined) {
    const text = Buffer.from(inline, 'base64').toString('utf8')
    return () => text
  }
  return file === undefined ? () => undefined : reread(resolve(base, file))
}

function bearer(token: string): string {
  return `Bearer ${token.trim()}`
}

function configError(message: string, cause?: unknown): KubeError {
  return new KubeError(message, { code: 0, reason: 'Config', cause })
}
