// An OpenID Connect issuer of tests: keys, the server that publishes them, and tokens signed by them.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'

export interface IssuerKeys {
  readonly privateKey: CryptoKey
  readonly jwk: JWK
}

export async function makeIssuerKeys(kid?: string): Promise<IssuerKeys> {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  return { privateKey, jwk: { ...(await exportJWK(publicKey)), alg: 'ES256', ...(kid === undefined ? {} : { kid }) } }
}

export interface TokenIssuer extends AsyncDisposable {
  /** By which its tokens name it, and at which it is asked for its keys. */
  readonly address: string
  /** The paths that were asked for. */
  readonly asked: readonly string[]
}

/** On loopback; unavailable while there are no keys. Keys that are put there later are published from then on. */
export async function startTokenIssuer(keys: readonly JWK[]): Promise<TokenIssuer> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    const isDiscovery = request.url === '/.well-known/openid-configuration'
    if (isDiscovery && keys.length === 0) response.writeHead(503).end()
    else response.end(JSON.stringify(isDiscovery ? { issuer: address, jwks_uri: `${address}/keys` } : { keys }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    address,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

/** A token of a service account that is good for an hour. */
export function signToken(
  { privateKey, jwk }: IssuerKeys,
  claims: { readonly iss: string; readonly aud: string; readonly sub: string },
): Promise<string> {
  const header = { alg: 'ES256', ...(jwk.kid === undefined ? {} : { kid: jwk.kid }) }
  return new SignJWT(claims).setProtectedHeader(header).setExpirationTime('1h').sign(privateKey)
}
