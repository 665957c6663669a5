// Addresses, roots and credentials of the control plane's two servers.
import { ConfigError } from './errors.ts'
import type { ConfigInputs } from './load.ts'
import type { ControlPlaneEndpoint, RootSource, TokenSource } from './types.ts'
import { readHeaders } from './variables.ts'

const defaultRoot = './var/run/secrets/istio/root-cert.pem'
const defaultToken = './var/run/secrets/tokens/istio-token'

/** The server named by `<role>_ADDRESS`; undefined when that is empty. */
export function readControlPlane(
  inputs: ConfigInputs,
  role: 'XDS' | 'CA',
  discoveryAddress: string | undefined,
): ControlPlaneEndpoint | undefined {
  const { env } = inputs
  const inCluster = env.KUBERNETES_SERVICE_HOST !== undefined && env.KUBERNETES_SERVICE_HOST !== ''
  const otherwise = inCluster ? 'https://istiod.istio-system.svc:15012' : 'https://localhost:15012'
  const name = `${role}_ADDRESS`
  const address = env[name] ?? (discoveryAddress || otherwise)
  if (address === '') return undefined
  const altHostname = env[`ALT_${role}_HOSTNAME`]
  return {
    address: readUri(name, address),
    roots: readRoots(env[`${role}_ROOT_CA`]),
    ...(altHostname === undefined || altHostname === '' ? {} : { altHostname }),
    headers: readHeaders(env, `${role}_HEADER_`),
  }
}

/** The token that proves who we are: a file (read again for every request) or the text itself. */
export function readToken(inputs: ConfigInputs): TokenSource | undefined {
  const given = inputs.env.AUTH_TOKEN
  if (given === undefined || given === '') {
    return inputs.readFile(defaultToken) === undefined ? undefined : { kind: 'file', path: defaultToken }
  }
  return isExistingFile(inputs, given) ? { kind: 'file', path: given } : { kind: 'literal', token: given }
}

function readRoots(given: string | undefined): RootSource {
  if (given === undefined || given === '') return { kind: 'file', path: defaultRoot }
  if (given === 'SYSTEM') return { kind: 'system' }
  // A path to a file that is not there yet is still a path: it is read when the connection is made.
  return given.includes('-----BEGIN') ? { kind: 'pem', pem: given } : { kind: 'file', path: given }
}

function isExistingFile(inputs: ConfigInputs, path: string): boolean {
  return !path.includes('\n') && inputs.readFile(path) !== undefined
}

function readUri(name: string, text: string): string {
  const uri = text.includes('://') ? text : `https://${text}`
  const parsed = URL.parse(uri)
  if (parsed === null || parsed.hostname === '' || parsed.protocol !== 'https:') {
    throw new ConfigError(`invalid env var ${name}=${text} (expected https://host:port)`)
  }
  return uri
}
