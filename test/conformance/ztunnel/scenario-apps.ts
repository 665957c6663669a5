// The applications of the scenarios: echo servers, servers that end HBONE themselves, a waypoint behind the PROXY protocol.
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { defaultHttp2Options, serveTunnels, type TlsCredentials } from '../../../src/hbone/index.ts'
import { ignoreErrors } from '../../support/lab-sockets.ts'
import type { MeshLab } from '../../support/mesh-lab.ts'

export interface AppWorld {
  readonly lab: MeshLab
  readonly pod: string
  /** Of the pod's own identity. */
  readonly credentials: TlsCredentials
  /** Where a gateway sends what its tunnels carry. */
  readonly forwardTo: string
  /** Addresses of clients as the application sees them. */
  readonly seen: string[]
}

type App = (world: AppWorld) => Promise<void>

const port = 8080
const hbonePort = 15008

export const apps: Readonly<Record<string, App>> = {
  echo: async ({ lab, pod, seen }) => {
    await lab.listen(pod, port, (socket) => {
      seen.push(socket.remoteAddress ?? '')
      ignoreErrors(socket)
      socket.on('data', (chunk) => socket.write(Buffer.concat([chunk, chunk])))
      socket.on('end', () => socket.end())
    })
  },
  'answer-after-eof': async ({ lab, pod }) => {
    await lab.listen(pod, port, (socket) => {
      const chunks: Buffer[] = []
      ignoreErrors(socket)
      socket.on('data', (chunk) => chunks.push(chunk))
      socket.on('end', () => socket.end(Buffer.concat(chunks)))
    })
  },
  'hbone-echo': async (world) => {
    await serveHbone(world, (stream) => {
      stream.write('waypoint\n')
      stream.pipe(stream)
    })
  },
  'hbone-forward-to-echo': async (world) => {
    await serveHbone(world, (stream) => {
      world.lab.connect(world.pod, { ip: world.forwardTo, port: hbonePort }).then(
        (onward) => {
          ignoreErrors(onward)
          stream.pipe(onward)
          onward.pipe(stream)
        },
        () => stream.destroy(),
      )
    })
  },
  'proxy-protocol-forwarder': async ({ lab, pod }) => {
    await lab.listen(pod, 15088, (socket) => void forwardAnnounced(lab, pod, socket))
  },
}

async function serveHbone(world: AppWorld, handle: (stream: Duplex) => void): Promise<void> {
  const { lab, pod, credentials } = world
  await lab.listen(pod, hbonePort, (socket) => {
    ignoreErrors(socket)
    const tls = { credentials, checkPeer: () => undefined }
    serveTunnels(socket, { tls, http2: defaultHttp2Options }, (request) => {
      const { stream } = request.accept({ baggage: `service.name=${pod},k8s.namespace.name=default` })
      stream.on('error', () => undefined)
      handle(stream)
    }).catch(() => undefined)
  })
}

/** Reads a PROXY protocol header and connects to the address in it, through the mesh. */
async function forwardAnnounced(lab: MeshLab, pod: string, socket: Socket): Promise<void> {
  ignoreErrors(socket)
  let head = Buffer.alloc(0)
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    head = Buffer.concat([head, chunk as Buffer])
    if (head.length >= 16 && head.length >= 16 + head.readUInt16BE(14)) break
  }
  const ip = [...head.subarray(20, 24)].join('.')
  const onward = await lab.connect(pod, { ip, port: head.readUInt16BE(26) })
  ignoreErrors(onward)
  onward.write(head.subarray(16 + head.readUInt16BE(14)))
  socket.pipe(onward)
  onward.pipe(socket)
}
