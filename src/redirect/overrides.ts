// What a pod's annotations change in its redirection.

export interface PodOverrides {
  /** No inbound capture at all; only the HBONE port is the proxy's. */
  readonly ingressMode: boolean
  /** Interfaces behind which a virtual machine or container sends: their traffic is outbound. */
  readonly virtualInterfaces: readonly string[]
  readonly dnsProxy: 'unset' | 'enabled' | 'disabled'
}

export interface OverrideWarning {
  readonly annotation: string
  readonly value: string
  readonly expected: string
}

const annotation = {
  ingress: 'ambient.istio.io/bypass-inbound-capture',
  dns: 'ambient.istio.io/dns-capture',
  interfaces: 'istio.io/reroute-virtual-interfaces',
} as const

const truths = new Set(['1', 't', 'T', 'TRUE', 'true', 'True'])
const falsehoods = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False'])

/** A boolean as Go's strconv.ParseBool reads it; undefined when it is none. */
export function parseBoolean(text: string): boolean | undefined {
  if (truths.has(text)) return true
  return falsehoods.has(text) ? false : undefined
}

/** Interface names are passed to the kernel's tools: only what the kernel would accept is let through. */
const interfaceName = /^[A-Za-z0-9][A-Za-z0-9_.:@-]{0,14}$/

/**
 * Reads the overrides of a pod. A value that can't be read counts as absent and gives a warning.
 */
export function podOverrides(annotations: Readonly<Record<string, string>>): {
  overrides: PodOverrides
  warnings: OverrideWarning[]
} {
  const warnings: OverrideWarning[] = []
  const boolean = (name: string): boolean | undefined => {
    const value = annotations[name]
    if (value === undefined) return undefined
    const parsed = parseBoolean(value)
    if (parsed === undefined) warnings.push({ annotation: name, value, expected: 'true or false' })
    return parsed
  }
  const dns = boolean(annotation.dns)
  const interfaces = (annotations[annotation.interfaces] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  const usable = interfaces.filter((name) => {
    if (interfaceName.test(name)) return true
    warnings.push({ annotation: annotation.interfaces, value: name, expected: 'interface names separated by commas' })
    return false
  })
  return {
    overrides: {
      ingressMode: boolean(annotation.ingress) ?? false,
      virtualInterfaces: usable,
      dnsProxy: dns === undefined ? 'unset' : dns ? 'enabled' : 'disabled',
    },
    warnings,
  }
}
