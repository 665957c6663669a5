// Which users and groups this process may become: in a user namespace, only those that are mapped.
import { readFileSync } from 'node:fs'

export interface IdMaps {
  hasUser(id: number): boolean
  hasGroup(id: number): boolean
  /** Whether supplementary groups may be set. */
  readonly canSetGroups: boolean
}

export function readIdMaps(read: (path: string) => string = (path) => readFileSync(path, 'utf8')): IdMaps {
  const ranges = (path: string) =>
    read(path)
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/).map(Number))
  const has = (list: readonly (readonly number[])[], id: number) =>
    list.some(([first = 0, , count = 0]) => id >= first && id < first + count)
  const users = ranges('/proc/self/uid_map')
  const groups = ranges('/proc/self/gid_map')
  return {
    hasUser: (id) => has(users, id),
    hasGroup: (id) => has(groups, id),
    canSetGroups: read('/proc/self/setgroups').trim() === 'allow',
  }
}
