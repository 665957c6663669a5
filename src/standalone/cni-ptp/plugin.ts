// A CNI plugin that joins a pod with its node by a link of its own and routes: what the plugins ptp and host-local do
// together, for machines that do not have them. It takes their configuration.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { run, tryRun } from '../run.ts'
import { allocateAddress, gatewayOf, releaseAddress } from './addresses.ts'

interface Config {
  readonly cniVersion: string
  readonly name: string
  readonly ipam: { readonly dataDir: string; readonly ranges: readonly (readonly { readonly subnet: string }[])[] }
}

const versions = ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0']

export interface PluginAnswer {
  readonly exitCode: number
  readonly output: string
}

/** Carries out the call that the environment and the standard input describe. Never rejects. */
export async function runPtpPlugin(
  env: Readonly<Record<string, string | undefined>>,
  input: string,
): Promise<PluginAnswer> {
  if (env.CNI_COMMAND === 'VERSION') {
    return { exitCode: 0, output: JSON.stringify({ cniVersion: versions.at(-1), supportedVersions: versions }) }
  }
  let cniVersion = '1.0.0'
  try {
    const config = JSON.parse(input) as Config
    cniVersion = config.cniVersion
    const result = await call(env, config)
    return { exitCode: 0, output: result === undefined ? '' : JSON.stringify(result) }
  } catch (error) {
    return { exitCode: 1, output: JSON.stringify({ cniVersion, code: 999, msg: (error as Error).message }) }
  }
}

async function call(env: Readonly<Record<string, string | undefined>>, config: Config): Promise<object | undefined> {
  const { CNI_COMMAND, CNI_CONTAINERID: id = '', CNI_NETNS: netns = '', CNI_IFNAME: name = '' } = env
  if (id === '' || name === '') throw new Error('CNI_CONTAINERID and CNI_IFNAME are needed')
  const subnet = config.ipam?.ranges?.[0]?.[0]?.subnet
  if (subnet === undefined) throw new Error('ipam.ranges names no subnet')
  const place = {
    id,
    netns,
    name,
    subnet,
    owner: `${id}\n${name}`,
    addresses: join(config.ipam.dataDir, config.name),
    hostName: `veth${createHash('sha256').update(`${id}/${name}`).digest('hex').slice(0, 8)}`,
  }
  switch (CNI_COMMAND) {
    case 'ADD':
      return add(place, config.cniVersion)
    case 'DEL':
      await remove(place)
      return undefined
    case 'CHECK':
      await run(inside(place, 'ip', 'link', 'show', 'dev', name))
      return undefined
    case 'STATUS':
    case 'GC':
      return undefined
    default:
      throw new Error(`unknown CNI_COMMAND ${CNI_COMMAND}`)
  }
}

interface Place {
  readonly netns: string
  readonly name: string
  readonly subnet: string
  readonly owner: string
  readonly addresses: string
  readonly hostName: string
}

async function add(place: Place, cniVersion: string): Promise<object> {
  const { netns, name, subnet, hostName } = place
  const ip = await allocateAddress(place.addresses, subnet, place.owner)
  const gateway = gatewayOf(subnet)
  const address = `${ip}/${subnet.split('/')[1]}`
  try {
    await run(['ip', 'link', 'add', hostName, 'type', 'veth', 'peer', 'name', name, 'netns', netns])
    await run(inside(place, 'ip', 'address', 'add', address, 'dev', name, 'noprefixroute'))
    await run(inside(place, 'ip', 'link', 'set', name, 'up'))
    await run(['ip', 'address', 'add', `${gateway}/32`, 'dev', hostName])
    await run(['ip', 'link', 'set', hostName, 'up'])
    await run(['ip', 'route', 'replace', `${ip}/32`, 'dev', hostName])
    await run(inside(place, 'ip', 'route', 'add', `${gateway}/32`, 'dev', name, 'scope', 'link', 'src', ip))
    await run(inside(place, 'ip', 'route', 'add', 'default', 'via', gateway, 'dev', name, 'src', ip))
  } catch (error) {
    await remove(place)
    throw error
  }
  return {
    cniVersion,
    interfaces: [{ name: hostName }, { name, sandbox: netns }],
    ips: [{ interface: 1, address, gateway }],
    routes: [{ dst: '0.0.0.0/0', gw: gateway }],
    dns: {},
  }
}

/** Removes what is there; the namespace may be gone already. */
async function remove(place: Place): Promise<void> {
  if (place.netns !== '' && existsSync(place.netns)) await tryRun(inside(place, 'ip', 'link', 'delete', place.name))
  if (existsSync(`/sys/class/net/${place.hostName}`)) await tryRun(['ip', 'link', 'delete', place.hostName])
  await releaseAddress(place.addresses, place.owner)
}

function inside({ netns }: Place, ...argv: string[]): string[] {
  return ['nsenter', `--net=${netns}`, '--', ...argv]
}
