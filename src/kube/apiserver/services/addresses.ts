// Cluster IPs and node ports of Services: handed out when a Service is stored, free again when it is gone.
import { randomInt } from 'node:crypto'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Cause, KindDefinition, KubeObject } from '../../../api/index.ts'
import { ApiError, invalid } from '../errors.ts'
import type { Store } from '../store/store.ts'

interface ServicePort {
  name?: string
  port: number
  protocol?: string
  nodePort?: number
}

interface ServiceSpec {
  type?: string
  clusterIP?: string
  clusterIPs?: string[]
  ipFamilies?: string[]
  ipFamilyPolicy?: string
  ports?: ServicePort[]
  externalTrafficPolicy?: string
  allocateLoadBalancerNodePorts?: boolean
}

const nodePorts = { first: 30000, last: 32767 }

export class ServiceAddresses {
  readonly #range: AddressRange
  readonly #store: Store

  /** `cidr`: the range of cluster IPs; its first address is the API's own. */
  constructor(store: Store, cidr: string) {
    this.#store = store
    this.#range = new AddressRange(cidr)
  }

  /** The address of the Service `kubernetes`. */
  get apiAddress(): string {
    return this.#range.at(1n)
  }

  /** Sets the addresses of a Service about to be stored, in place; other kinds are left alone. Throws 422 where a wish can't be met. */
  assign(kind: KindDefinition, object: KubeObject, old: KubeObject | undefined): void {
    if (kind.group !== '' || kind.kind !== 'Service') return
    const spec = (object.spec ?? {}) as ServiceSpec
    object.spec = spec
    const oldSpec = (old?.spec ?? {}) as ServiceSpec
    const causes: Cause[] = []
    this.#assignAddress(object, spec, oldSpec, causes)
    this.#assignPorts(object, spec, oldSpec, causes)
    if (causes.length > 0) throw invalid(kind, object.metadata.name, causes)
  }

  #assignAddress(object: KubeObject, spec: ServiceSpec, old: ServiceSpec, causes: Cause[]): void {
    if (spec.type === 'ExternalName') {
      for (const field of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy'] as const) delete spec[field]
      return
    }
    const wish = spec.clusterIP ?? spec.clusterIPs?.[0] ?? ''
    const had = old.type === 'ExternalName' ? '' : (old.clusterIP ?? '')
    if (had !== '' && wish !== '' && wish !== had) {
      const message = `Invalid value: ${JSON.stringify([wish])}: may not change once set`
      causes.push({ reason: 'FieldValueInvalid', field: 'spec.clusterIPs[0]', message })
      return
    }
    const address = wish !== '' ? wish : had !== '' ? had : this.#freeAddress()
    if (address !== 'None' && address !== had) {
      const why = this.#refusal(address, object)
      if (why !== undefined) {
        causes.push({
          reason: 'FieldValueInvalid',
          field: 'spec.clusterIPs',
          message: `Invalid value: ${JSON.stringify([address])}: failed to allocate IP ${address}: ${why}`,
        })
        return
      }
    }
    spec.clusterIP = address
    spec.clusterIPs = [address]
    spec.ipFamilies = [this.#range.family === 'ipv6' ? 'IPv6' : 'IPv4']
    spec.ipFamilyPolicy = 'SingleStack'
  }

  #refusal(address: string, object: KubeObject): string | undefined {
    if (isIP(address) === 0) return 'not an IP address'
    if (!this.#range.contains(address)) return `the provided IP is not in the valid range ${this.#range.cidr}`
    const taken = this.#taken().get(address)
    const own = `${object.metadata.namespace ?? ''}/${object.metadata.name}`
    return taken === undefined || taken === own ? undefined : 'provided IP is already allocated'
  }

  #taken(): Map<string, string> {
    const taken = new Map<string, string>()
    for (const entry of this.#store.list('/services')) {
      const { clusterIP } = (entry.object.spec ?? {}) as ServiceSpec
      if (clusterIP !== undefined && clusterIP !== '' && clusterIP !== 'None') taken.set(clusterIP, entry.key)
    }
    return taken
  }

  #freeAddress(): string {
    const taken = this.#taken()
    // The lower part of a range is left to addresses chosen by hand, as Kubernetes does, until the upper part is used up.
    const reserved = this.#range.size / 16n < 256n ? this.#range.size / 16n : 256n
    const firstFree = (from: bigint, to: bigint): string | undefined => {
      const count = to - from
      // From anywhere on: an address that just became free is not used again at once, while connections may still know it.
      const start = count > 0n ? BigInt(randomInt(Number(count < 2n ** 40n ? count : 2n ** 40n))) : 0n
      for (let step = 0n; step < count; step += 1n) {
        const address = this.#range.at(from + ((start + step) % count))
        if (!taken.has(address)) return address
      }
      return undefined
    }
    const last = this.#range.size - 1n
    const found = firstFree(reserved < 2n ? 2n : reserved, last) ?? firstFree(2n, reserved)
    if (found === undefined) {
      throw new ApiError(
        500,
        'InternalError',
        `failed to allocate a serviceIP: the range ${this.#range.cidr} is full; delete Services or start with a larger --service-cidr`,
      )
    }
    return found
  }

  #assignPorts(object: KubeObject, spec: ServiceSpec, old: ServiceSpec, causes: Cause[]): void {
    const wanted =
      spec.type === 'NodePort' || (spec.type === 'LoadBalancer' && spec.allocateLoadBalancerNodePorts !== false)
    if (!wanted) {
      for (const port of spec.ports ?? []) if (spec.type !== 'LoadBalancer') delete port.nodePort
      if (spec.type !== 'LoadBalancer') delete spec.externalTrafficPolicy
      return
    }
    spec.externalTrafficPolicy ??= 'Cluster'
    const own = `${object.metadata.namespace ?? ''}/${object.metadata.name}`
    const taken = this.#takenPorts(own)
    const ports = spec.ports ?? []
    ports.forEach((port, index) => {
      const protocol = port.protocol ?? 'TCP'
      const field = `spec.ports[${index}].nodePort`
      const before = old.ports?.find((other) => other.port === port.port && (other.protocol ?? 'TCP') === protocol)
      port.nodePort = port.nodePort || before?.nodePort || 0
      if (port.nodePort === 0) {
        port.nodePort = freePort(taken, protocol)
      } else if (port.nodePort < nodePorts.first || port.nodePort > nodePorts.last) {
        const message = `Invalid value: ${port.nodePort}: provided port is not in the valid range. The range of valid ports is ${nodePorts.first}-${nodePorts.last}`
        causes.push({ reason: 'FieldValueInvalid', field, message })
      } else if (taken.has(`${protocol}/${port.nodePort}`)) {
        const message = `Invalid value: ${port.nodePort}: provided port is already allocated`
        causes.push({ reason: 'FieldValueInvalid', field, message })
      }
      taken.add(`${protocol}/${port.nodePort}`)
    })
  }

  #takenPorts(except: string): Set<string> {
    const taken = new Set<string>()
    for (const entry of this.#store.list('/services')) {
      if (entry.key === except) continue
      for (const port of ((entry.object.spec ?? {}) as ServiceSpec).ports ?? []) {
        if (port.nodePort) taken.add(`${port.protocol ?? 'TCP'}/${port.nodePort}`)
      }
    }
    return taken
  }
}

/** The address of the Service `kubernetes` in a range of cluster IPs. */
export function firstAddressOf(cidr: string): string {
  return new AddressRange(cidr).at(1n)
}

function freePort(taken: ReadonlySet<string>, protocol: string): number {
  const count = nodePorts.last - nodePorts.first + 1
  const start = Math.floor(Math.random() * count)
  for (let step = 0; step < count; step += 1) {
    const port = nodePorts.first + ((start + step) % count)
    if (!taken.has(`${protocol}/${port}`)) return port
  }
  throw new ApiError(500, 'InternalError', 'failed to allocate a nodePort: the range is full')
}

/** The addresses of a CIDR block by their offset. */
class AddressRange {
  readonly cidr: string
  readonly family: 'ipv4' | 'ipv6'
  readonly #base: bigint
  readonly size: bigint

  constructor(cidr: string) {
    const [address, bits] = ipaddr.parseCIDR(cidr)
    this.cidr = cidr
    this.family = address.kind()
    const width = this.family === 'ipv6' ? 128 : 32
    this.size = 1n << BigInt(width - bits)
    this.#base = (toNumber(address.toByteArray()) / this.size) * this.size
  }

  at(offset: bigint): string {
    const bytes = toBytes(this.#base + offset, this.family === 'ipv6' ? 16 : 4)
    return ipaddr.fromByteArray(bytes).toString()
  }

  contains(address: string): boolean {
    const parsed = ipaddr.parse(address)
    if (parsed.kind() !== this.family) return false
    const offset = toNumber(parsed.toByteArray()) - this.#base
    return offset > 0n && offset < this.size
  }
}

function toNumber(bytes: readonly number[]): bigint {
  return bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n)
}

function toBytes(value: bigint, length: number): number[] {
  return Array.from({ length }, (_, index) => Number((value >> BigInt(8 * (length - 1 - index))) & 0xffn))
}
