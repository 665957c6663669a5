// `lateen version`: the version of this program and of what it runs on.
import { readFileSync } from 'node:fs'
import { Command } from 'commander'

/** The package's version. */
export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return version
}

export function create(): Command {
  return new Command('version')
    .description('Print the version.')
    .option('--short', 'only the version')
    .action(({ short }: { short?: boolean }) => {
      const { node, openssl, v8 } = process.versions
      const more = short ? '' : ` (node ${node}, v8 ${v8}, openssl ${openssl}, ${process.platform}/${process.arch})`
      process.stdout.write(`${short ? '' : 'lateen '}${packageVersion()}${more}\n`)
    })
}
