// System calls the mesh needs and Node does not offer. All of it is Linux only; elsewhere every call throws a LinuxError.

export interface NetworkNamespace extends Disposable {
  /** An open descriptor of the namespace; closed by dispose, after which reading it throws a LinuxError. */
  readonly fd: number
  readonly inode: bigint
  readonly device: bigint
}

export interface KeepaliveOptions {
  readonly timeSeconds: number
  readonly intervalSeconds: number
  readonly retries: number
  /** Also bounds how long sent data may stay unacknowledged: time + retries × interval. */
  readonly userTimeout: boolean
}

export interface SocketOptions {
  /** IPv4 or IPv6 (IPv6 sockets are dual-stack unless v6Only). */
  readonly family: 4 | 6
  readonly type: 'stream' | 'datagram'
  readonly v6Only?: boolean
  readonly mark?: number
  /** IP_TRANSPARENT: 'required' fails without the right, 'attempt' goes on without it. */
  readonly transparent?: 'required' | 'attempt'
  readonly freebind?: boolean
  readonly reusePort?: boolean
  readonly reuseAddress?: boolean
  /** Of a TCP socket: TCP_NODELAY, and keepalive where it is given. What a listener accepts has the same. */
  readonly tcp?: { readonly keepalive: KeepaliveOptions | undefined }
  readonly bind?: { readonly ip: string; readonly port: number }
  /** Listens with this backlog, so that connections wait before anybody accepts them. */
  readonly backlog?: number
}

export interface CreatedSocket {
  /** For `server.listen({ fd })`, `new net.Socket({ fd, manualStart: true })` or `dgram`. The taker owns it. */
  readonly fd: number
  readonly transparent: boolean
}

/** One SOCK_SEQPACKET connection: datagrams with descriptors. */
export interface SeqpacketConnection extends AsyncDisposable {
  /** Resolves when the kernel took the packet. */
  send(message: Uint8Array, descriptors?: readonly number[]): Promise<void>
  /** The next packet, or undefined at the end of the stream. The caller owns the descriptors. A timeout rejects with code ETIMEDOUT. */
  receive(options?: {
    readonly maxBytes?: number
    readonly timeoutMs?: number
  }): Promise<{ message: Uint8Array; descriptors: number[] } | undefined>
  close(): void
}

export interface SeqpacketListener extends AsyncDisposable {
  accept(): Promise<SeqpacketConnection | undefined>
  close(): void
}
