import type { CustomResourceDefinition } from './custom-kinds.ts'
export const istioCrds: readonly CustomResourceDefinition[] = []
