// A store of Secrets in memory, with the API server's rule that a write must name the version it read.
import type { SecretContent, SecretStore } from '../../src/ca/index.ts'

export interface MemorySecretStore extends SecretStore {
  readonly secrets: Map<string, SecretContent>
  failWrites: boolean
}

export function memorySecretStore(): MemorySecretStore {
  let version = 0
  const store: MemorySecretStore = {
    secrets: new Map(),
    failWrites: false,
    async read(name) {
      return store.secrets.get(name)
    },
    async create(name, secret) {
      if (store.failWrites) throw new Error('the API server refused the write')
      if (store.secrets.has(name)) return false
      version += 1
      store.secrets.set(name, { ...secret, version: String(version) })
      return true
    },
    async replace(name, secret) {
      if (store.failWrites) throw new Error('the API server refused the write')
      if (store.secrets.get(name)?.version !== secret.version) throw new Error('conflict')
      version += 1
      store.secrets.set(name, { ...secret, version: String(version) })
    },
  }
  return store
}
