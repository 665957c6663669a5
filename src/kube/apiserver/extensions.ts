// The parts that make up the embedded API: built-in kinds, authentication, admission, custom resources, OpenAPI.
import { loadKubernetesKinds } from '../../api/index.ts'
import { createAdmissionExtension } from './admission/index.ts'
import { type AuthenticationOptions, createAuthExtension } from './auth/index.ts'
import { type CustomResourceOptions, createCustomResourceExtension } from './crd/index.ts'
import { createOpenApiExtension } from './openapi/index.ts'
import type { ApiExtension } from './types.ts'

/** In the order in which they start. */
export async function loadExtensions(
  options: AuthenticationOptions & CustomResourceOptions,
): Promise<readonly ApiExtension[]> {
  return [
    { name: 'kubernetes', kinds: await loadKubernetesKinds() },
    createAdmissionExtension(),
    createAuthExtension(options),
    createCustomResourceExtension(options),
    createOpenApiExtension(),
  ]
}
