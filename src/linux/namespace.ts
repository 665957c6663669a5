// Network namespaces: opening one, and running a synchronous function inside one.
import { closeSync, fstatSync, openSync } from 'node:fs'
import { CLONE_NEWNET } from './constants.ts'
import { duplicateDescriptor } from './descriptor.ts'
import { LinuxError } from './errors.ts'
import { checked, libc } from './libc.ts'
import type { NetworkNamespace } from './types.ts'

/** A namespace by path (`/run/netns/x`, `/proc/7/ns/net`) or by the id of a process inside it. */
export function openNetworkNamespace(of: string | number): NetworkNamespace {
  return adoptNetworkNamespace(openSync(typeof of === 'number' ? `/proc/${of}/ns/net` : of, 'r'))
}

/** Takes over a descriptor of a namespace, as received from another process. */
export function adoptNetworkNamespace(fd: number): NetworkNamespace {
  const { ino: inode, dev: device } = fstatSync(fd, { bigint: true })
  let open = true
  return {
    get fd() {
      // The number may be another file's by now, and a socket made there another pod's.
      if (!open) throw new LinuxError('setns', 'EBADF', 'the network namespace is closed')
      return fd
    },
    inode,
    device,
    [Symbol.dispose]() {
      if (open) closeSync(fd)
      open = false
    },
  }
}

/** Names a namespace that this process has open. It can be posted to other threads. */
export type OpenNamespace = Pick<NetworkNamespace, 'fd' | 'inode' | 'device'>

/**
 * A further descriptor of a namespace that this process, on whichever thread, has open. Throws a LinuxError `ESTALE` when that has
 * been closed meanwhile, and the number is another file's.
 */
export function duplicateNetworkNamespace({ fd, inode, device }: OpenNamespace): NetworkNamespace {
  const duplicate = adoptNetworkNamespace(duplicateDescriptor(fd))
  if (duplicate.inode === inode && duplicate.device === device) return duplicate
  duplicate[Symbol.dispose]()
  throw new LinuxError('fcntl', 'ESTALE', 'the network namespace has been closed')
}

let home: number | undefined
let inside = false

/** This thread's own namespace, opened once: a lookup on every socket would cost more than the switch. */
function homeDescriptor(): number {
  home ??= openSync('/proc/thread-self/ns/net', 'r')
  return home
}

/**
 * Runs `run` with this thread inside the namespace and returns its result. `run` must be synchronous: what it creates
 * (sockets, listeners) stays in the namespace, what it awaits would run outside. Calls may not be nested. When the way
 * back fails the process aborts, since a thread in the wrong namespace would send traffic as somebody else.
 */
export function runInNamespace<T>(namespace: NetworkNamespace | undefined, run: () => T): T {
  if (namespace === undefined) return run()
  if (inside) throw new TypeError('runInNamespace calls may not be nested')
  const back = homeDescriptor()
  checked('setns', libc().setns(namespace.fd, CLONE_NEWNET), 'failed to set netns: is CAP_SYS_ADMIN missing?')
  inside = true
  let result: T
  try {
    result = run()
  } finally {
    if (libc().setns(back, CLONE_NEWNET) !== 0) libc().abort()
    inside = false
  }
  if (result instanceof Promise) throw new TypeError('a function run in a network namespace must be synchronous')
  return result
}
