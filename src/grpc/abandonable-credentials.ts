// TLS channel credentials whose handshakes end: grpc-js leaves a handshake under way open for ever when the server says nothing,
// one socket each attempt, also after the channel is closed.
import type { Socket } from 'node:net'
import { ChannelCredentials } from '@grpc/grpc-js'

type CreateConnector = ChannelCredentials['_createSecureConnector']

export class AbandonableCredentials extends ChannelCredentials {
  readonly #inner: ChannelCredentials
  readonly #handshakes = new Set<Socket>()

  readonly #timeoutMs: number

  /** `timeoutMs`: the longest time for one handshake. */
  constructor(inner: ChannelCredentials, timeoutMs: number) {
    super()
    this.#inner = inner
    this.#timeoutMs = timeoutMs
  }

  /** Ends every handshake under way. */
  abandon(): void {
    for (const socket of this.#handshakes) socket.destroy()
    this.#handshakes.clear()
  }

  override _isSecure(): boolean {
    return true
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other
  }

  override _createSecureConnector(...args: Parameters<CreateConnector>): ReturnType<CreateConnector> {
    const connector = this.#inner._createSecureConnector(...args)
    return {
      connect: async (socket) => {
        this.#handshakes.add(socket)
        const timer = setTimeout(() => socket.destroy(new Error('the TLS handshake took too long')), this.#timeoutMs)
        try {
          return await connector.connect(socket)
        } finally {
          clearTimeout(timer)
          this.#handshakes.delete(socket)
        }
      },
      waitForReady: () => connector.waitForReady(),
      getCallCredentials: () => connector.getCallCredentials(),
      destroy: () => connector.destroy(),
    }
  }
}
