// Reads what a request asks for from its method and URL.
export type RequestTarget =
  | {
      readonly kind: 'resource'
      readonly group: string
      readonly version: string
      readonly plural: string
      readonly namespace?: string
      readonly name?: string
      readonly subresource?: string
      /** What follows the subresource: the path behind `proxy`. */
      readonly rest?: string
      /** The old form `/api/v1/watch/…`. */
      readonly watchPath: boolean
    }
  | { readonly kind: 'path'; readonly path: string }

/** `/api/v1/…` and `/apis/<group>/<version>/…` with at least a resource name; everything else is a plain path. */
export function parseTarget(pathname: string): RequestTarget {
  const parts = pathname
    .split('/')
    .filter((part) => part !== '')
    .map(decode)
  const plain: RequestTarget = { kind: 'path', path: pathname }
  if (parts.includes(undefined)) return plain
  const words = parts as string[]
  const prefix = words.shift()
  if (prefix !== 'api' && prefix !== 'apis') return plain
  const group = prefix === 'api' ? '' : words.shift()
  const version = words.shift()
  if (group === undefined || version === undefined || words.length === 0) return plain
  const watchPath = words[0] === 'watch' && words.length > 1
  if (watchPath) words.shift()
  return { kind: 'resource', group, version, watchPath, ...parseResource(words) }
}

function parseResource(words: string[]): {
  plural: string
  namespace?: string
  name?: string
  subresource?: string
  rest?: string
} {
  const ofNamespaceItself = words.length === 3 && (words[2] === 'status' || words[2] === 'finalize')
  if (words[0] === 'namespaces' && words.length > 2 && !ofNamespaceItself) {
    return { namespace: words[1] ?? '', ...parseResource(words.slice(2)) }
  }
  const [plural = '', name, subresource, ...rest] = words
  return {
    plural,
    ...(name === undefined ? {} : { name }),
    ...(subresource === undefined ? {} : { subresource }),
    ...(rest.length === 0 ? {} : { rest: rest.join('/') }),
  }
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

/** The verb for authorization. */
export function verbOf(method: string, target: RequestTarget, query: URLSearchParams): string {
  if (target.kind === 'path') return method.toLowerCase()
  switch (method) {
    case 'POST':
      return 'create'
    case 'PUT':
      return 'update'
    case 'PATCH':
      return 'patch'
    case 'DELETE':
      return target.name === undefined ? 'deletecollection' : 'delete'
    case 'GET':
    case 'HEAD': {
      if (target.watchPath || (isTrue(query.get('watch')) && target.subresource === undefined)) return 'watch'
      return target.name === undefined ? 'list' : 'get'
    }
    default:
      return method.toLowerCase()
  }
}

/** Booleans in queries: `true`, `1`, and a parameter without a value. */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== 'false' && value !== '0'
}
