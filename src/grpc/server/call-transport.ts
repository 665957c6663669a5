// What a call is made over. grpc-js tells a call the addresses of its connection and no more; the connection is found by them.
import { type Metadata, ServerInterceptingCall, type ServerInterceptor } from '@grpc/grpc-js'
import type { Ends, GrpcConnection } from './connections.ts'

export interface CallTransport {
  readonly connection: GrpcConnection
  /** While on, nothing more is read of the call than what is under way: its sender fills the window of its stream, and waits. */
  hold(on: boolean): void
}

export interface CallTransports {
  readonly interceptor: ServerInterceptor
  of(call: { readonly metadata: object }): CallTransport | undefined
}

type KnownConnection = GrpcConnection & { callBegan(): void; callEnded(): void }

export function createCallTransports(connectionOf: (ends: Ends) => KnownConnection | undefined): CallTransports {
  const transports = new WeakMap<object, CallTransport>()
  return {
    interceptor: (_method, call) => {
      const connection = connectionOf(call.getConnectionInfo())
      const observed = new HoldableCall(call, {
        start(next) {
          next({
            onReceiveMetadata(metadata: Metadata, pass) {
              if (connection !== undefined) {
                connection.callBegan()
                transports.set(metadata, { connection, hold: (on) => observed.hold(on) })
              }
              pass(metadata)
            },
            onCancel: () => connection?.callEnded(),
          })
        },
      })
      return observed
    },
    of: ({ metadata }) => transports.get(metadata),
  }
}

class HoldableCall extends ServerInterceptingCall {
  #isHeld = false
  #isReadWanted = false

  hold(on: boolean): void {
    this.#isHeld = on
    if (on || !this.#isReadWanted) return
    this.#isReadWanted = false
    super.startRead()
  }

  override startRead(): void {
    if (this.#isHeld) this.#isReadWanted = true
    else super.startRead()
  }
}
