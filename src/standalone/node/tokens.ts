// Service account tokens bound to a pod, renewed at four fifths of their life.
import { resources } from '../../api/index.ts'
import type { KubeClient } from '../../kube/index.ts'
import type { Pod } from './types.ts'

interface TokenRequest {
  readonly status?: { readonly token?: string; readonly expirationTimestamp?: string }
}

export interface TokenSource {
  token(pod: Pod, audience: string | undefined, expirationSeconds: number): Promise<string>
  forget(podUid: string): void
}

export function createTokenSource(client: KubeClient, now: () => number = Date.now): TokenSource {
  const held = new Map<string, { token: string; renewAtMs: number }>()
  return {
    async token(pod, audience, expirationSeconds) {
      const { namespace = '', name, uid = '' } = pod.metadata
      const key = `${uid}/${audience ?? ''}/${expirationSeconds}`
      const before = held.get(key)
      if (before !== undefined && now() < before.renewAtMs) return before.token
      const body = {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: {
          ...(audience === undefined ? {} : { audiences: [audience] }),
          expirationSeconds,
          boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
        },
      }
      const account = { namespace, name: pod.spec?.serviceAccountName ?? 'default' }
      const answer = await client.createSubresource<TokenRequest>(resources.serviceAccounts, account, 'token', body)
      const token = answer.status?.token
      if (token === undefined) throw new Error(`no token for service account ${namespace}/${account.name}`)
      const expiresAtMs = Date.parse(answer.status?.expirationTimestamp ?? '') || now() + expirationSeconds * 1000
      held.set(key, { token, renewAtMs: now() + (expiresAtMs - now()) * 0.8 })
      return token
    },
    forget(podUid) {
      for (const key of held.keys()) if (key.startsWith(`${podUid}/`)) held.delete(key)
    },
  }
}
