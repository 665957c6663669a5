// The labels of its Node that a node may set itself. Others of Kubernetes' own domains tell where pods may run.

const own = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/arch',
  'kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'failure-domain.beta.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
])
const ownDomains = ['kubelet.kubernetes.io', 'node.kubernetes.io']
const reservedDomains = ['kubernetes.io', 'k8s.io']

type Labels = Readonly<Record<string, string>>

/** Which of the labels that a write changes are not the node's to change, in order. */
export function labelsForbidden(after: Labels = {}, before: Labels = {}): string[] {
  const changed = new Set([...Object.keys(after), ...Object.keys(before)].filter((key) => after[key] !== before[key]))
  return [...changed].filter(isReserved).sort()
}

function isReserved(label: string): boolean {
  const [domain = '', name] = label.split('/', 2)
  if (name === undefined || own.has(label)) return false
  const isWithin = (outer: string): boolean => domain === outer || domain.endsWith(`.${outer}`)
  return reservedDomains.some(isWithin) && !ownDomains.some(isWithin)
}
