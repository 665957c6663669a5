import type { CustomResourceDefinition } from './custom-kinds.ts'
export const gatewayCrds: readonly CustomResourceDefinition[] = []
