// A client of tunnels that shares no code with the product: TLS as the mesh asks for it, then HTTP/2 frame by frame.
import { once } from 'node:events'
import tls from 'node:tls'
import type { MeshLab } from './mesh-lab.ts'
import { encodeFrame, encodeHeaders, flags, frameTypes, preface, type RawPeer, rawPeer, statusOf } from './raw-http2.ts'

export interface RawTunnelClient extends RawPeer, AsyncDisposable {
  /** Asks for a tunnel on the stream. Resolves with the answer. */
  connect(stream: number, authority: string): Promise<{ readonly status: number; readonly ended: boolean }>
  answer(stream: number): Promise<{ readonly status: number; readonly ended: boolean }>
  /** So many bytes of a stream, as text. */
  read(stream: number, bytes: number): Promise<string>
}

export interface RawTunnelOptions {
  /** The pod it runs in. */
  readonly from: string
  readonly to: string
  /** Its identity, and the one that it expects. */
  readonly as: string
  readonly expects: string
  /** Its own chain and key; absent: a new certificate of the mesh. */
  readonly credentials?: { readonly chain: string; readonly privateKey: string }
  /** The payload of its SETTINGS. */
  readonly settings?: Uint8Array
}

/** Connected, with the settings of both sides acknowledged. */
export async function openRawTunnels(lab: MeshLab, options: RawTunnelOptions): Promise<RawTunnelClient> {
  const { from, to, as, expects, settings = Buffer.alloc(0) } = options
  const { chain, privateKey } = options.credentials ?? (await lab.controlPlane.issue(as))
  const transport = await lab.connect(from, { ip: to, port: 15008 })
  transport.allowHalfOpen = false
  const socket = tls.connect({
    socket: transport,
    cert: chain,
    key: privateKey,
    ca: lab.controlPlane.roots,
    ALPNProtocols: ['h2'],
    minVersion: 'TLSv1.3',
    checkServerIdentity: (_, { subjectaltname }) =>
      subjectaltname === `URI:${expects}` ? undefined : new Error(`another server: ${subjectaltname}`),
  })
  await once(socket, 'secureConnect')
  const peer = rawPeer(socket)
  peer.send(preface, encodeFrame(frameTypes.settings, 0, 0, settings))
  const isSettings = (ack: number) => (frame: { type: number; flags: number }) =>
    frame.type === frameTypes.settings && frame.flags === ack
  const theirs = await peer.next(isSettings(0), 'settings')
  if (theirs.payload.length % 6 !== 0) throw new Error('settings of a wrong length')
  peer.send(encodeFrame(frameTypes.settings, 0, flags.ack))
  await peer.next(isSettings(flags.ack), 'the acknowledgement')

  const answer = async (stream: number) => {
    const frame = await peer.next(({ type, stream: of }) => type === frameTypes.headers && of === stream, 'an answer')
    return { status: statusOf(frame.payload), ended: (frame.flags & flags.endStream) !== 0 }
  }
  return {
    stream: peer.stream,
    send: peer.send,
    next: peer.next,
    pending: peer.pending,
    get ended() {
      return peer.ended
    },
    answer,
    async connect(stream, authority) {
      peer.send(encodeFrame(frameTypes.headers, stream, flags.endHeaders, connectBlock(authority)))
      return await answer(stream)
    },
    async read(stream, bytes) {
      let text = ''
      while (text.length < bytes) {
        const { payload } = await peer.next(({ type, stream: of }) => type === frameTypes.data && of === stream, 'data')
        text += payload.toString()
      }
      return text
    },
    [Symbol.asyncDispose]: async () => void socket.destroy(),
  }
}

/** The header block that asks for a tunnel, or with another method for what is none. */
export function connectBlock(authority: string, method = 'CONNECT'): Buffer {
  const ofRequests =
    method === 'CONNECT'
      ? []
      : ([
          [':scheme', 'https'],
          [':path', '/'],
        ] as const)
  return encodeHeaders([
    [':method', method],
    [':authority', authority],
    ...ofRequests,
    ['baggage', 'k8s.namespace.name=elsewhere'],
    ['forwarded', 'for="10.0.0.1:1"'],
  ])
}
