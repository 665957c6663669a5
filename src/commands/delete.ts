// `lateen delete`: deletes objects named by manifests or by kind and name.
import { Command } from 'commander'
import { deleteManifests } from '../kube/index.ts'
import { type ConnectionOptions, UsageError, withClient, withConnectionOptions } from './connection.ts'
import { collect, manifestsOf, nameOf } from './manifests.ts'
import { findResource } from './resource-names.ts'

export function create(): Command {
  const command = new Command('delete')
    .description('Delete objects, named by manifests (-f) or as KIND NAME…')
    .argument('[kind]', 'kind, plural or short name: pod, svc, authorizationpolicy')
    .argument('[names...]', 'names of the objects')
    .option('-f, --filename <file>', 'file, folder or - for standard input; may be repeated', collect)
    .option('--ignore-not-found', 'objects that do not exist are no error')
  return withConnectionOptions(command).action(
    async (
      kind: string | undefined,
      names: string[],
      options: ConnectionOptions & { filename?: string[]; ignoreNotFound?: boolean },
    ) => {
      if (options.filename === undefined && (kind === undefined || names.length === 0)) {
        throw new UsageError('nothing to delete: give -f FILE, or KIND NAME')
      }
      const manifests = manifestsOf(options.filename ?? [])
      await withClient(options, async (client, namespace) => {
        for (const { resource, object } of await deleteManifests(client, manifests, { namespace })) {
          process.stdout.write(`${nameOf(resource, object.metadata.name)} deleted\n`)
        }
        if (kind === undefined) return
        const resource = await findResource(client, kind)
        for (const name of names) {
          const there = await client.delete(resource, resource.namespaced ? { namespace, name } : { name })
          if (there) process.stdout.write(`${nameOf(resource, name)} deleted\n`)
          else if (options.ignoreNotFound !== true)
            throw new UsageError(
              `${nameOf(resource, name)} does not exist${resource.namespaced ? ` in namespace ${namespace}` : ''}`,
            )
        }
      })
    },
  )
}
