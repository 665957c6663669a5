// `lateen get`: prints objects as a table, YAML or JSON.
import { Command, Option } from 'commander'
import { stringify } from 'yaml'
import { apiVersionOf, type KubeObject, type Resource } from '../api/index.ts'
import type { KubeClient } from '../kube/index.ts'
import { type ConnectionOptions, UsageError, withClient, withConnectionOptions } from './connection.ts'
import { findResource } from './resource-names.ts'
import { type Table, tableText } from './table.ts'

interface GetOptions extends ConnectionOptions {
  readonly allNamespaces?: boolean
  readonly output?: 'yaml' | 'json' | 'wide' | 'name'
  readonly selector?: string
}

export function create(): Command {
  const command = new Command('get')
    .description('Print objects.')
    .argument('<kind>', 'kind, plural or short name; several with commas: pods,svc')
    .argument('[names...]', 'names of the objects; without one, all of the namespace')
    .option('-A, --all-namespaces', 'objects of all namespaces')
    .option('-l, --selector <labels>', 'label selector')
    .addOption(new Option('-o, --output <format>', 'how to print').choices(['yaml', 'json', 'wide', 'name']))
  return withConnectionOptions(command).action((kinds: string, names: string[], options: GetOptions) =>
    withClient(options, async (client, namespace) => {
      for (const kind of kinds.split(','))
        await print(client, await findResource(client, kind), names, namespace, options)
    }),
  )
}

async function print(
  client: KubeClient,
  resource: Resource,
  names: readonly string[],
  namespace: string,
  options: GetOptions,
): Promise<void> {
  const paths = names.length === 0 ? [undefined] : names
  for (const name of paths) {
    const path = pathOf(resource, options.allNamespaces === true ? undefined : namespace, name, options.selector)
    const structured = options.output === 'yaml' || options.output === 'json' || options.output === 'name'
    const accept = structured ? 'application/json' : 'application/json;as=Table;v=v1;g=meta.k8s.io, application/json'
    const response = await client.request(path, { headers: { accept } })
    const body = (await response.json()) as Record<string, unknown>
    if (!response.ok) throw new UsageError(String(body.message ?? `HTTP ${response.status}`))
    process.stdout.write(render(resource, body, namespace, options))
  }
}

function pathOf(
  resource: Resource,
  namespace: string | undefined,
  name: string | undefined,
  selector?: string,
): string {
  const version = apiVersionOf(resource)
  const base = version.includes('/') ? `/apis/${version}` : `/api/${version}`
  const scope = resource.namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : ''
  const one = name === undefined ? '' : `/${encodeURIComponent(name)}`
  const query = selector === undefined ? '' : `?labelSelector=${encodeURIComponent(selector)}`
  return `${base}${scope}/${resource.plural}${one}${query}`
}

function render(resource: Resource, body: Record<string, unknown>, namespace: string, options: GetOptions): string {
  switch (options.output) {
    case 'json':
      return `${JSON.stringify(body, undefined, 2)}\n`
    case 'yaml':
      return stringify(body)
    case 'name': {
      const items = (body.items as KubeObject[] | undefined) ?? [body as unknown as KubeObject]
      return items.map(({ metadata }) => `${resource.kind.toLowerCase()}/${metadata.name}\n`).join('')
    }
    default: {
      const table = body as unknown as Table
      if (table.rows.length === 0) {
        const where = resource.namespaced && !options.allNamespaces ? ` in namespace ${namespace}` : ''
        return `No ${resource.plural} found${where}.\n`
      }
      return tableText(table, {
        wide: options.output === 'wide',
        namespaces: options.allNamespaces === true && resource.namespaced,
      })
    }
  }
}
