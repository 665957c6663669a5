// The receiving half of flow control: what the peer may send, given back to it as its bytes are consumed.
import type { Http2Options } from '../types.ts'
import { errorCode, Http2ConnectionError, initialWindowBytes } from './constants.ts'
import type { Stream } from './stream.ts'

export interface Credit {
  /** Three quarters of the connection's window or more have arrived and are not consumed yet. */
  readonly nearlyAllHeld: boolean
  /** So much has arrived. Throws an Http2ConnectionError when the connection's window did not allow it. */
  take(bytes: number): void
  /** So much of the connection's window is free again. */
  give(bytes: number): void
  /** The stream's owner is done with so much. */
  consumed(stream: Stream, bytes: number): void
}

export function createCredit(
  windows: Pick<Http2Options, 'streamWindowBytes' | 'connectionWindowBytes'>,
  sendWindowUpdate: (streamId: number, bytes: number) => void,
): Credit {
  // A peer that has not seen our settings yet goes by the protocol's initial window.
  const most = Math.max(windows.connectionWindowBytes, initialWindowBytes)
  let window = most
  let uncredited = 0

  function give(bytes: number): void {
    uncredited += bytes
    if (uncredited < windows.connectionWindowBytes / 4) return
    window += uncredited
    sendWindowUpdate(0, uncredited)
    uncredited = 0
  }

  return {
    get nearlyAllHeld() {
      return window + uncredited <= most / 4
    },
    take(bytes) {
      window -= bytes
      if (window < 0) throw new Http2ConnectionError(errorCode.flowControlError, 'more DATA than the window')
    },
    give,
    consumed(stream, bytes) {
      if (stream.closed) return
      stream.unconsumed -= bytes
      stream.uncredited += bytes
      give(bytes)
      if (stream.endReceived || stream.uncredited < windows.streamWindowBytes / 2) return
      stream.receiveWindow += stream.uncredited
      sendWindowUpdate(stream.id, stream.uncredited)
      stream.uncredited = 0
    },
  }
}
