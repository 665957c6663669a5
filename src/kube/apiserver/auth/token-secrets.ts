// Fills Secrets of type kubernetes.io/service-account-token: a long-lived token of the account that the Secret names.
import { revise } from '../revise.ts'
import type { ApiCore, KubeObject } from '../types.ts'
import type { TokenAuthority } from './tokens.ts'

const accountAnnotation = 'kubernetes.io/service-account.name'
const uidAnnotation = 'kubernetes.io/service-account.uid'
const tenYearsSeconds = 10 * 365 * 24 * 60 * 60

interface Secret extends KubeObject {
  readonly type?: string
  readonly data?: Readonly<Record<string, string>>
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** Runs from now on; returns the function that ends it. */
export function startTokenSecrets(core: ApiCore, tokens: TokenAuthority, authority: string): () => void {
  const kind = core.kinds.find('', 'v1', 'secrets')
  if (kind === undefined) throw new Error('secrets are not served')

  async function fill(secret: Secret): Promise<void> {
    const { namespace = '', name, uid, annotations } = secret.metadata
    const accountName = annotations?.[accountAnnotation]
    if (accountName === undefined || uid === undefined) return
    const account = core.objects.get('', 'serviceaccounts', { namespace, name: accountName })
    const accountUid = account?.metadata.uid
    if (accountUid === undefined || kind === undefined) return
    const { token } = await tokens.issue({
      namespace,
      account: { name: accountName, uid: accountUid },
      audiences: tokens.apiAudiences,
      expirationSeconds: tenYearsSeconds,
      bound: { kind: 'Secret', name, uid },
    })
    await revise<Secret>(core, kind, { namespace, name }, (current) => {
      if (current.metadata.uid !== uid || current.data?.token !== undefined) return undefined
      return {
        ...current,
        metadata: {
          ...current.metadata,
          annotations: { ...current.metadata.annotations, [uidAnnotation]: accountUid },
        },
        data: { ...current.data, token: base64(token), 'ca.crt': base64(authority), namespace: base64(namespace) },
      }
    })
  }

  const consider = (secret: Secret): void => {
    const isWaiting = secret.type === 'kubernetes.io/service-account-token' && secret.data?.token === undefined
    if (!isWaiting || secret.metadata.deletionTimestamp !== undefined) return
    fill(secret).catch((error: unknown) => {
      process.emitWarning(`Secret ${secret.metadata.namespace}/${secret.metadata.name} got no token: ${String(error)}`)
    })
  }
  const stops = [
    core.objects.subscribe('', 'secrets', (change) => {
      if (change.kind !== 'deleted') consider(change.object)
    }),
    // An account may come after the Secret that waits for it.
    core.objects.subscribe('', 'serviceaccounts', (change) => {
      const { namespace, name } = change.object.metadata
      if (change.kind !== 'added') return
      for (const secret of core.objects.list('', 'secrets', namespace)) {
        if (secret.metadata.annotations?.[accountAnnotation] === name) consider(secret)
      }
    }),
  ]
  return () => {
    for (const stop of stops) stop()
  }
}
