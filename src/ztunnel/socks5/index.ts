// The SOCKS5 entry of a pod: the messages a client sends, the handshake with it, its names resolved by the DNS proxy.
export { type Handshake, type HandshakeOptions, handshake } from './handshake.ts'
export { encodeReply, type Reading, readGreeting, readRequest, replies, type Socks5Target } from './messages.ts'
export { encodeQuestion, firstAddress } from './resolve.ts'
