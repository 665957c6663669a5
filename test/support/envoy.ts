// Stock Envoy as the other side of a tunnel: configurations, and a process inside a network namespace.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { MeshLab } from './mesh-lab.ts'

const envoyPath = process.env.LATEEN_ENVOY ?? '/opt/lateen-envoy/bin/envoy'

/** Why there is no Envoy to test with; false when there is one. */
export const envoyMissing = existsSync(envoyPath) ? false : `no Envoy at ${envoyPath} (LATEEN_ENVOY)`

export interface EnvoyFiles {
  readonly chain: string
  readonly key: string
  readonly roots: string
}

const file = (filename: string) => ({ filename })

const commonTls = (files: EnvoyFiles, peer: string) => ({
  tls_params: { tls_minimum_protocol_version: 'TLSv1_3', tls_maximum_protocol_version: 'TLSv1_3' },
  alpn_protocols: ['h2'],
  tls_certificates: [{ certificate_chain: file(files.chain), private_key: file(files.key) }],
  validation_context: {
    trusted_ca: file(files.roots),
    match_typed_subject_alt_names: [{ san_type: 'URI', matcher: { exact: peer } }],
  },
})

const typed = (name: string, more: Readonly<Record<string, unknown>> = {}) => ({
  '@type': `type.googleapis.com/${name}`,
  ...more,
})

const endpointsOf = (cluster: string, address: string, port: number) => ({
  cluster_name: cluster,
  endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: { address, port_value: port } } } }] }],
})

const listenOn = (address: string, port: number) => ({ socket_address: { address, port_value: port } })

/** A listener on loopback whose connections go through a CONNECT to the authority. */
export function tunnelClient(options: {
  readonly listenPort: number
  readonly tunnelTo: { readonly ip: string; readonly port: number }
  readonly authority: string
  readonly files: EnvoyFiles
  readonly peer: string
}): unknown {
  const { tunnelTo, files, peer, authority, listenPort } = options
  return {
    static_resources: {
      listeners: [
        {
          name: 'in',
          address: listenOn('127.0.0.1', listenPort),
          filter_chains: [
            {
              filters: [
                {
                  name: 'tcp',
                  typed_config: typed('envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy', {
                    stat_prefix: 'tcp',
                    cluster: 'tunnel',
                    tunneling_config: { hostname: authority },
                  }),
                },
              ],
            },
          ],
        },
      ],
      clusters: [
        {
          name: 'tunnel',
          type: 'STATIC',
          connect_timeout: '5s',
          load_assignment: endpointsOf('tunnel', tunnelTo.ip, tunnelTo.port),
          typed_extension_protocol_options: {
            'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': typed(
              'envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
              { explicit_http_config: { http2_protocol_options: { allow_connect: true } } },
            ),
          },
          transport_socket: {
            name: 'tls',
            typed_config: typed('envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext', {
              common_tls_context: commonTls(files, peer),
            }),
          },
        },
      ],
    },
  }
}

/** Ends tunnels and carries them to a port of its own namespace. */
export function tunnelServer(options: {
  readonly listenPort: number
  readonly applicationPort: number
  readonly files: EnvoyFiles
  readonly peer: string
}): unknown {
  const { listenPort, applicationPort, files, peer } = options
  return {
    static_resources: {
      listeners: [
        {
          name: 'tunnels',
          address: listenOn('0.0.0.0', listenPort),
          filter_chains: [
            {
              transport_socket: {
                name: 'tls',
                typed_config: typed('envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext', {
                  require_client_certificate: true,
                  common_tls_context: commonTls(files, peer),
                }),
              },
              filters: [
                {
                  name: 'http',
                  typed_config: typed(
                    'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
                    {
                      stat_prefix: 'tunnels',
                      codec_type: 'HTTP2',
                      http2_protocol_options: { allow_connect: true },
                      upgrade_configs: [{ upgrade_type: 'CONNECT' }],
                      route_config: {
                        virtual_hosts: [
                          {
                            name: 'all',
                            domains: ['*'],
                            routes: [
                              {
                                match: { connect_matcher: {} },
                                route: {
                                  cluster: 'application',
                                  timeout: '0s',
                                  upgrade_configs: [{ upgrade_type: 'CONNECT', connect_config: {} }],
                                },
                              },
                            ],
                          },
                        ],
                      },
                      http_filters: [
                        {
                          name: 'router',
                          typed_config: typed('envoy.extensions.filters.http.router.v3.Router'),
                        },
                      ],
                    },
                  ),
                },
              ],
            },
          ],
        },
      ],
      clusters: [
        {
          name: 'application',
          type: 'STATIC',
          connect_timeout: '5s',
          load_assignment: endpointsOf('application', '127.0.0.1', applicationPort),
        },
      ],
    },
  }
}

/** Files with the certificate of an identity, for Envoy to read. */
export async function envoyFiles(lab: MeshLab, spiffeId: string): Promise<EnvoyFiles> {
  const { chain, privateKey } = await lab.controlPlane.issue(spiffeId)
  const base = join(lab.directory, `envoy-${spiffeId.split('/').at(-1)}`)
  const files = { chain: `${base}.crt`, key: `${base}.key`, roots: join(lab.directory, 'root-cert.pem') }
  writeFileSync(files.chain, chain)
  writeFileSync(files.key, privateKey)
  return files
}

/** Runs until it is disposed of; resolves once its workers have started. */
export async function startEnvoy(
  lab: MeshLab,
  name: string,
  config: unknown,
): Promise<AsyncDisposable & { log(): string }> {
  const path = join(lab.directory, `envoy-${name}.json`)
  writeFileSync(path, JSON.stringify(config))
  const command = ['netns', 'exec', lab.namespaceName(name), envoyPath, '-c', path, '--concurrency', '1']
  const child: ChildProcess = spawn('ip', [...command, '--use-dynamic-base-id'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let log = ''
  const started = Promise.withResolvers<void>()
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      log += chunk.toString()
      if (log.includes('starting main dispatch loop')) started.resolve()
    })
  }
  const exited = once(child, 'exit')
  exited.then(() => started.reject(new Error(`Envoy ended: ${log.slice(-2000)}`)))
  await started.promise
  return {
    log: () => log,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
