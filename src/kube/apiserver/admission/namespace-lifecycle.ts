// Nothing is created in a namespace that does not exist or is being deleted; the system's own namespaces stay.
import { ApiError, forbidden, notFound } from '../errors.ts'
import type { AdmissionPlugin, ObjectReader } from '../types.ts'

const permanent = new Set(['default', 'kube-system', 'kube-public'])
const namespaces = { group: '', plural: 'namespaces' }

export function createNamespaceLifecycle(objects: () => ObjectReader): AdmissionPlugin {
  return {
    name: 'NamespaceLifecycle',
    async mutate({ operation, kind, namespace, name, subresource }) {
      if (operation === 'DELETE' && kind.group === '' && kind.plural === 'namespaces' && permanent.has(name)) {
        throw forbidden(namespaces, name, 'this namespace may not be deleted')
      }
      const isReview = kind.verbs !== undefined
      if (operation !== 'CREATE' || namespace === undefined || subresource !== undefined || isReview) return
      const existing = objects().get('', 'namespaces', { name: namespace })
      if (existing === undefined) throw notFound(namespaces, namespace)
      if (existing.metadata.deletionTimestamp === undefined) return
      const why = `unable to create new content in namespace ${namespace} because it is being terminated`
      const cause = {
        reason: 'NamespaceTerminating',
        message: `namespace ${namespace} is being terminated`,
        field: 'metadata.namespace',
      }
      const refusal = forbidden(kind, name, why)
      throw new ApiError(refusal.code, refusal.reason, refusal.message, { ...refusal.details, causes: [cause] })
    },
  }
}
