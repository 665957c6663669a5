// ClusterTrustBundles: who writes the roots of a signer must have the right to attest for it.
import { forbidden } from '../errors.ts'
import type { AdmissionPlugin, Authorizer, KubeObject } from '../types.ts'
import { mayUseSigner } from './signer-rights.ts'

const group = 'certificates.k8s.io'
const plural = 'clustertrustbundles'

type TrustBundle = KubeObject<{ readonly signerName?: string; readonly trustBundle: string }>

export function createTrustBundleAdmission(authorizer: Authorizer): AdmissionPlugin {
  return {
    name: 'ClusterTrustBundleAttest',
    async validate({ kind, operation, object, oldObject, user, name }) {
      if (kind.group !== group || kind.plural !== plural) return
      if (object === undefined || (operation !== 'CREATE' && operation !== 'UPDATE')) return
      const next = (object as TrustBundle).spec
      const signerName = next?.signerName ?? ''
      const before = (oldObject as TrustBundle | undefined)?.spec
      // Labels and the like say nothing for the signer.
      const isSame = before?.signerName === next?.signerName && before?.trustBundle === next?.trustBundle
      if (signerName === '' || (operation === 'UPDATE' && isSame)) return
      if (await mayUseSigner(authorizer, user, 'attest', signerName)) return
      throw forbidden({ group, plural }, name, `user not permitted to attest for signerName "${signerName}"`)
    },
  }
}
