// The Secrets of the system namespace, as the CA keeps its material in them.
import { type KubeObject, resources } from '../api/index.ts'
import type { SecretContent, SecretStore } from '../ca/index.ts'
import { isKubeError, type KubeClient } from '../kube/index.ts'

interface Secret extends KubeObject {
  type?: string
  data?: Record<string, string>
}

export function secretStore(client: KubeClient, namespace: string): SecretStore {
  return {
    async read(name) {
      const secret = await client.get<Secret>(resources.secrets, { namespace, name })
      return secret === undefined ? undefined : contentOf(secret)
    },
    async create(name, secret) {
      try {
        await client.create(resources.secrets, secretOf(namespace, name, secret))
        return true
      } catch (error) {
        if (isKubeError(error, 409)) return false
        throw error
      }
    },
    async replace(name, secret) {
      await client.replace(resources.secrets, secretOf(namespace, name, secret))
    },
  }
}

function contentOf({ type = '', data = {}, metadata }: Secret): SecretContent {
  const decoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')])
  return {
    type,
    data: Object.fromEntries(decoded),
    ...(metadata.resourceVersion === undefined ? {} : { version: metadata.resourceVersion }),
  }
}

function secretOf(namespace: string, name: string, { type, data, version }: SecretContent): Secret {
  const encoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')])
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace, ...(version === undefined ? {} : { resourceVersion: version }) },
    type,
    data: Object.fromEntries(encoded),
  }
}
