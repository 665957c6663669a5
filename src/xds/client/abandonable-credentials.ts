// TLS channel credentials whose handshakes can be broken off: closing a grpc-js channel leaves a handshake under way open for ever
// when the server says nothing.
import type { Socket } from 'node:net'
import { ChannelCredentials } from '@grpc/grpc-js'

type CreateConnector = ChannelCredentials['_createSecureConnector']

export class AbandonableCredentials extends ChannelCredentials {
  readonly #inner: ChannelCredentials
  readonly #handshakes = new Set<Socket>()

  constructor(inner: ChannelCredentials) {
    super()
    this.#inner = inner
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
        try {
          return await connector.connect(socket)
        } finally {
          this.#handshakes.delete(socket)
        }
      },
      waitForReady: () => connector.waitForReady(),
      getCallCredentials: () => connector.getCallCredentials(),
      destroy: () => connector.destroy(),
    }
  }
}
