// The usual test mesh: a client on one node, a server on another, and a service of the server that answers with what it is told.
import type { Socket } from 'node:net'
import { answerBack } from './lab-sockets.ts'
import { createMeshLab, type LabPod, type MeshLab } from './mesh-lab.ts'
import { announcePod, announceService, exchange } from './mesh-lab-content.ts'

export const client = { name: 'client', ip: '10.77.2.1', node: 'n1' }
export const server = { name: 'server', ip: '10.77.2.2', node: 'n2' }
/** Outside the mesh; only in labs that ask for it. */
export const outsider = { name: 'outsider', ip: '10.77.2.3' }
export const echo = { name: 'echo', vips: ['10.78.0.9', 'fd78::9'], ports: { 80: 8080 } }
export const echoTo = { ip: '10.78.0.9', port: 80 }

export interface EchoLabOptions {
  /** Besides client and server. */
  readonly pods?: readonly LabPod[]
  /** Besides n1 and n2. */
  readonly nodes?: readonly string[]
  readonly onDemand?: boolean
  /** What the server does instead of answering back. */
  readonly onSocket?: (socket: Socket) => void
}

/** Client, server and service are announced and the server listens; no proxy runs yet. */
export async function createEchoLab(options: EchoLabOptions = {}): Promise<MeshLab> {
  const { pods = [], nodes = [], onDemand = false, onSocket = answerBack } = options
  const lab = await createMeshLab({ pods: [client, server, ...pods], nodes: ['n1', 'n2', ...nodes], onDemand })
  announcePod(lab, client)
  announcePod(lab, server, [echo])
  announceService(lab, echo)
  await lab.listen('server', 8080, onSocket)
  return lab
}

/** Whether the client gets an answer of the service. */
export const echoWorks = async (lab: MeshLab): Promise<boolean> =>
  (await exchange(lab, 'client', echoTo, 'works').catch(() => '')) === 'works'
