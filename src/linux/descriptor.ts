// Descriptors of this process, whatever they are of.
import { F_DUPFD_CLOEXEC } from './constants.ts'
import { checked, libc } from './libc.ts'

/** A further descriptor of the same file or socket, on whichever thread that is open. The caller closes it. Throws a LinuxError. */
export function duplicateDescriptor(fd: number): number {
  return checked('fcntl', libc().fcntl(fd, F_DUPFD_CLOEXEC, 'int', 0))
}
