// A client of one connection without a network: what it was sent, and when that arrives.
import assert from 'node:assert/strict'
import { create, fromBinary } from '@bufbuild/protobuf'
import { silentLogging } from '../../observability/index.ts'
import { core, discovery } from '../../proto/index.ts'
import type { ResourceSource } from '../types.ts'
import { type Connection, createConnection } from './connection.ts'
import { parseNode } from './node.ts'
import { createSendBudget } from './send-budget.ts'

export interface Message {
  readonly typeUrl: string
  readonly names: readonly string[]
  readonly removed: readonly string[]
}

export interface TestClient {
  readonly connection: Connection
  readonly messages: Message[]
  /** Messages written while another was on its way. */
  readonly overlaps: () => number
  /** The messages on their way arrive. */
  arrive(): void
  /** The message on its way arrives, and no later one. */
  arriveOne(): void
}

/** `asked`: names of an on-demand client; empty: everything. The sources are in the order in which they are pushed. */
export function connectClient(
  sources: readonly ResourceSource[],
  asked: readonly string[] = [],
  nodeName = '',
): TestClient {
  const messages: Message[] = []
  let waiting: ((isLost: boolean) => void) | undefined
  let overlaps = 0
  const connection = createConnection({
    id: 'c',
    node: parseNode(create(core.NodeSchema, { id: 'ztunnel~1.1.1.1~z.ns~ns.svc', metadata: { NODE_NAME: nodeName } })),
    identities: [],
    ownIdentities: [],
    peer: '',
    types: sources.map((source) => ({ source, isWildcard: true })),
    oneShots: new Map(),
    outlet: {
      write(bytes, done) {
        if (waiting !== undefined) overlaps += 1
        const { typeUrl, resources, removedResources } = fromBinary(discovery.DeltaDiscoveryResponseSchema, bytes)
        messages.push({
          typeUrl,
          names: resources.map(({ name }) => name).sort(),
          removed: [...removedResources].sort(),
        })
        waiting = done
      },
      hold: () => {},
      fail: (error) => assert.fail(String(error)),
    },
    budget: createSendBudget(1_000_000),
    controlPlane: 'test',
    nextVersion: () => 'v',
    events: {
      sent: () => {},
      built: () => {},
      lost: () => {},
      stale: () => {},
      rejected: () => {},
      left: () => {},
      queued: () => {},
      converged: () => {},
    },
    log: silentLogging().scope('test'),
  })
  for (const { typeUrl } of sources) {
    connection.receive({
      kind: 'delta',
      message: create(discovery.DeltaDiscoveryRequestSchema, {
        typeUrl,
        resourceNamesSubscribe: [...asked],
        ...(asked.length === 0 ? {} : { resourceNamesUnsubscribe: ['*'] }),
      }),
      bytes: 0,
    })
  }
  return {
    connection,
    messages,
    overlaps: () => overlaps,
    arriveOne() {
      const done = waiting
      waiting = undefined
      done?.(false)
    },
    arrive() {
      while (waiting !== undefined) {
        const done = waiting
        waiting = undefined
        done(false)
      }
    },
  }
}

/** Resolves when every client has got so many messages. */
export const answered = (all: readonly TestClient[], count = 1): Promise<void> =>
  new Promise((resolve) => {
    const look = (): void => {
      for (const one of all) if (one.messages.length < count) one.arrive()
      if (all.every(({ messages }) => messages.length >= count)) resolve()
      else setTimeout(look, 1)
    }
    look()
  })
