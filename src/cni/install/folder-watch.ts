// Watches folders that may be replaced: a watch belongs to one inode, and says nothing of the folder that takes its place.
import { type FSWatcher, statSync, watch } from 'node:fs'
import { basename } from 'node:path'

export interface FolderWatch extends Disposable {
  /** Watches anew what was replaced, or came into being. False when a folder is not watched now: changes of it will not be told. */
  refresh(): boolean
}

export function watchFolders(
  folders: readonly string[],
  changed: () => void,
  log: (level: 'warn', message: string) => void,
): FolderWatch {
  const watched = new Map<string, { readonly inode: number; readonly watcher: FSWatcher }>()

  const end = (folder: string): void => {
    watched.get(folder)?.watcher.close()
    watched.delete(folder)
  }

  const begin = (folder: string, inode: number): boolean => {
    try {
      const watcher = watch(folder, (event, name) => {
        // The folder itself went: the one that takes its place may have the same inode.
        if (event === 'rename' && name === basename(folder)) end(folder)
        changed()
      })
      watcher.on('error', (error) => {
        if (watched.get(folder)?.watcher !== watcher) return
        end(folder)
        log('warn', `${folder} is not watched any more: ${error.message}`)
        changed()
      })
      watched.set(folder, { inode, watcher })
      return true
    } catch (error) {
      log('warn', `${folder} can't be watched: ${(error as Error).message}`)
      return false
    }
  }

  const refreshOne = (folder: string): boolean => {
    const inode = statSync(folder, { throwIfNoEntry: false })?.ino
    if (inode !== undefined && watched.get(folder)?.inode === inode) return true
    end(folder)
    return inode !== undefined && begin(folder, inode)
  }

  return {
    refresh: () => folders.map(refreshOne).every((isWatched) => isWatched),
    [Symbol.dispose]: () => {
      for (const folder of [...watched.keys()]) end(folder)
    },
  }
}
