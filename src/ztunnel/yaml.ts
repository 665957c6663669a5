// The YAML library, loaded by who has something to read: most proxies are set by variables alone, and it takes some megabytes.
import { createRequire } from 'node:module'

export const loadYaml = (): typeof import('yaml') => createRequire(import.meta.url)('yaml')
