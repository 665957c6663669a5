// Kept-alive connections are given up before their server does so: what changes something is never sent on one that the server has just closed.
import type { Agent, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

/** How long a server keeps an idle connection that does not say so. kube-apiserver: 90 s; load balancers before it: often a minute. */
const usualKeptMs = 60_000

export interface IdleConnections {
  /** A server says with its answers how long it keeps the connection (RFC 9112, section 9.3, `Keep-Alive: timeout`). */
  answered(response: IncomingMessage): void
  /** Ends those that were idle for half of that. To be called before a request, as timers are late in a process that is busy. */
  endOld(): void
}

export function watchIdleness(agent: Agent, now: () => number = () => performance.now()): IdleConnections {
  const idleSince = new WeakMap<Duplex, number>()
  const keptMs = new WeakMap<Duplex, number>()
  const keep = agent.keepSocketAlive.bind(agent)
  agent.keepSocketAlive = (socket) => {
    idleSince.set(socket, now())
    return keep(socket)
  }
  return {
    answered({ socket, headers }) {
      const seconds = /(?:^|[,\s])timeout=(\d+)/i.exec(String(headers['keep-alive']))?.[1]
      if (seconds !== undefined) keptMs.set(socket, Number(seconds) * 1_000)
    },
    endOld() {
      for (const sockets of Object.values(agent.freeSockets)) {
        for (const socket of sockets ?? []) {
          const idleMs = now() - (idleSince.get(socket) ?? 0)
          if (idleMs >= (keptMs.get(socket) ?? usualKeptMs) / 2) socket.destroy()
        }
      }
    },
  }
}
