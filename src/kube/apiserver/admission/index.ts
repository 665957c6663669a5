// The admission that every API server has, and webhooks.
import type { ApiCore, ApiExtension, ObjectReader } from '../types.ts'
import { createNamespaceLifecycle } from './namespace-lifecycle.ts'
import { createServiceAccountAdmission } from './service-account.ts'
import { createWebhookAdmission } from './webhooks.ts'

export function createAdmissionExtension(): ApiExtension {
  let started: ApiCore | undefined
  const objects = (): ObjectReader => {
    if (started === undefined) throw new Error('the API server has not started')
    return started.objects
  }
  return {
    name: 'admission',
    admission: [
      createNamespaceLifecycle(objects),
      createServiceAccountAdmission(objects),
      createWebhookAdmission(objects),
    ],
    async start(core) {
      started = core
    },
  }
}
