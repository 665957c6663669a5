// Numbers of the Linux interface, the same on x86-64 and arm64.

export const CLONE_NEWNET = 0x40000000

export const AF_UNIX = 1
export const AF_INET = 2
export const AF_INET6 = 10
export const SOCK_STREAM = 1
export const SOCK_DGRAM = 2
export const SOCK_SEQPACKET = 5
export const SOCK_NONBLOCK = 0o4000
export const SOCK_CLOEXEC = 0o2000000

export const SOL_IP = 0
export const SOL_SOCKET = 1
export const SOL_TCP = 6
export const SOL_IPV6 = 41

export const SO_REUSEADDR = 2
export const SO_ERROR = 4
export const SO_KEEPALIVE = 9
export const SO_LINGER = 13
export const SO_REUSEPORT = 15
export const SO_MARK = 36

export const IP_FREEBIND = 15
export const IP_TRANSPARENT = 19
export const IP_BIND_ADDRESS_NO_PORT = 24
export const IPV6_V6ONLY = 26
export const IPV6_TRANSPARENT = 75
export const IPV6_FREEBIND = 78
/** At both SOL_IP and SOL_IPV6. */
export const SO_ORIGINAL_DST = 80

export const TCP_NODELAY = 1
export const TCP_KEEPIDLE = 4
export const TCP_KEEPINTVL = 5
export const TCP_KEEPCNT = 6
export const TCP_INFO = 11
export const TCP_USER_TIMEOUT = 18

export const SCM_RIGHTS = 1
export const MSG_CTRUNC = 0x8
export const MSG_TRUNC = 0x20
export const MSG_DONTWAIT = 0x40
export const MSG_NOSIGNAL = 0x4000
export const MSG_CMSG_CLOEXEC = 0x40000000

export const RLIMIT_NOFILE = 7

export const F_DUPFD_CLOEXEC = 1030
export const F_GETFL = 3
export const F_SETFL = 4
export const F_SETOWN = 8
export const O_ASYNC = 0o20000
