// `lateen sample`: runs one service of the bundled sample application.
import { existsSync } from 'node:fs'
import { Argument, Command } from 'commander'

const services = ['productpage', 'details', 'reviews', 'ratings', 'traffic', 'fetch'] as const

export function create(): Command {
  return new Command('sample')
    .description('Run one service of the bookinfo sample; its settings are environment variables (PORT, VERSION, …).')
    .addArgument(new Argument('<service>', 'which one').choices(services))
    .argument('[arguments...]', 'for fetch: the URL')
    .action(async (service: string) => {
      // A published package holds them compiled.
      const source = new URL(`../../samples/bookinfo/services/${service}.ts`, import.meta.url)
      const compiled = new URL(`../samples/bookinfo/services/${service}.js`, import.meta.url)
      await import((existsSync(compiled) ? compiled : source).href)
    })
}
