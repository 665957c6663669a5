// `lateen apply`: creates and changes objects as manifests say.
import { Command } from 'commander'
import { applyManifests } from '../kube/index.ts'
import { type ConnectionOptions, UsageError, withClient, withConnectionOptions } from './connection.ts'
import { collect, manifestsOf, nameOf } from './manifests.ts'

export function create(): Command {
  const command = new Command('apply')
    .description('Apply manifests. All are checked first: when one is wrong, nothing is changed.')
    .option('-f, --filename <file>', 'file, folder or - for standard input; may be repeated', collect)
    .option('--dry-run', 'only check')
    .addHelpText('after', '\nExample:\n  lateen apply -f policy.yaml')
  return withConnectionOptions(command).action(
    async (options: ConnectionOptions & { filename?: string[]; dryRun?: boolean }) => {
      if (options.filename === undefined) throw new UsageError('nothing to apply: give -f FILE, -f FOLDER or -f -')
      const manifests = manifestsOf(options.filename)
      await withClient(options, async (client, namespace) => {
        const applied = await applyManifests(client, manifests, {
          namespace,
          fieldManager: 'lateen',
          dryRun: options.dryRun === true,
        })
        for (const { resource, object, outcome } of applied) {
          const said = options.dryRun ? 'is valid' : outcome
          process.stdout.write(`${nameOf(resource, object.metadata.name)} ${said}\n`)
        }
      })
    },
  )
}
