// Numbers of HTTP/2 (RFC 9113).

export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')
export const frameHeaderBytes = 9
export const leastMaxFrameBytes = 16_384
export const mostMaxFrameBytes = 0xff_ffff
export const mostWindowBytes = 0x7fff_ffff
export const initialWindowBytes = 65_535

export const frameType = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

export const flag = { endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const

export const setting = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const

export const errorCode = {
  noError: 0x0,
  protocolError: 0x1,
  internalError: 0x2,
  flowControlError: 0x3,
  streamClosed: 0x5,
  frameSizeError: 0x6,
  refusedStream: 0x7,
  cancel: 0x8,
  compressionError: 0x9,
  enhanceYourCalm: 0xb,
} as const

/** What the peer did against the protocol, so that the connection cannot go on. `code` goes out in the GOAWAY. */
export class Http2ConnectionError extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.name = 'Http2ConnectionError'
    this.code = code
  }
}
