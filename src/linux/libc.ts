// The C library by FFI, loaded at the first call, so that importing this room costs nothing elsewhere.
import { createRequire } from 'node:module'
import type { LibraryHandle } from 'koffi'
import { errnoName, LinuxError } from './errors.ts'

type Koffi = typeof import('koffi')

export interface Libc {
  setns(fd: number, type: number): number
  socket(family: number, type: number, protocol: number): number
  bind(fd: number, address: Uint8Array, length: number): number
  connect(fd: number, address: Uint8Array, length: number): number
  listen(fd: number, backlog: number): number
  accept4(fd: number, address: null, length: null, flags: number): number
  setsockopt(fd: number, level: number, name: number, value: Uint8Array, length: number): number
  getsockopt(fd: number, level: number, name: number, value: Uint8Array, length: Uint8Array): number
  /** glibc only. */
  readonly mallocTrim: ((pad: number) => number) | undefined
  sendmsg(fd: number, message: Uint8Array, flags: number): number
  recvmsg(fd: number, message: Uint8Array, flags: number): number
  fcntl(fd: number, command: number, kind: 'int', value: number): number
  getrlimit(resource: number, limits: Uint8Array): number
  setrlimit(resource: number, limits: Uint8Array): number
  /** Ends the process, from whichever thread; Node's own abort is the main thread's. */
  abort(): void
  errno(): string
  /** Where a buffer's bytes are; valid while the buffer is referenced. */
  addressOf(buffer: Uint8Array): bigint
}

let loaded: Libc | undefined

/** The functions of libc. Throws a LinuxError off Linux. */
export function libc(): Libc {
  loaded ??= load()
  return loaded
}

/** Calls and turns a negative result into a LinuxError. */
export function checked(syscall: string, result: number, detail?: string): number {
  if (result < 0) throw new LinuxError(syscall, libc().errno(), detail)
  return result
}

function load(): Libc {
  if (process.platform !== 'linux') throw new LinuxError('dlopen', 'ENOSYS', 'this needs Linux')
  const koffi: Koffi = createRequire(import.meta.url)('koffi')
  const lib = open(koffi)
  const int = (name: string, ...parameters: readonly string[]) => lib.func(name, 'int', [...parameters])
  return {
    setns: int('setns', 'int', 'int'),
    socket: int('socket', 'int', 'int', 'int'),
    bind: int('bind', 'int', 'void *', 'uint32_t'),
    connect: int('connect', 'int', 'void *', 'uint32_t'),
    listen: int('listen', 'int', 'int'),
    accept4: int('accept4', 'int', 'void *', 'void *', 'int'),
    setsockopt: int('setsockopt', 'int', 'int', 'int', 'void *', 'uint32_t'),
    getsockopt: int('getsockopt', 'int', 'int', 'int', 'void *', 'void *'),
    mallocTrim: optional(() => lib.func('malloc_trim', 'int', ['size_t'])),
    sendmsg: lib.func('sendmsg', 'long', ['int', 'void *', 'int']),
    recvmsg: lib.func('recvmsg', 'long', ['int', 'void *', 'int']),
    fcntl: lib.func('int fcntl(int, int, ...)'),
    getrlimit: int('getrlimit', 'int', 'void *'),
    setrlimit: int('setrlimit', 'int', 'void *'),
    abort: lib.func('abort', 'void', []),
    errno: () => errnoName(koffi.errno()),
    addressOf: (buffer) => koffi.address(buffer),
  }
}

function optional<T>(find: () => T): T | undefined {
  try {
    return find()
  } catch {
    return undefined
  }
}

/** glibc and musl name their library differently. */
function open(koffi: Koffi): LibraryHandle {
  try {
    return koffi.load('libc.so.6')
  } catch {
    return koffi.load(`libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`)
  }
}
