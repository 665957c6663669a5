// `lateen controllers`: runs the scheduler and the controllers against an API server until it is told to stop.
import { Command } from 'commander'
import { createKubeClient, loadConnection } from '../kube/index.ts'
import { createLogging } from '../observability/index.ts'
import { startControllers } from '../standalone/controllers/index.ts'

interface Flags {
  readonly kubeconfig?: string
  readonly schedulerKubeconfig?: string
}

export function create(): Command {
  return new Command('controllers')
    .description(
      'Runs the scheduler and the controllers of Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, EndpointSlices and service accounts.',
    )
    .option('--kubeconfig <file>', 'how to reach the API server (default: as kubectl finds it)')
    .option('--scheduler-kubeconfig <file>', 'credentials of the scheduler (default: those of the controllers)')
    .action(run)
}

async function run({ kubeconfig, schedulerKubeconfig }: Flags): Promise<void> {
  const logging = createLogging()
  const log = logging.scope('controllers')
  const options = kubeconfig === undefined ? {} : { kubeconfig }
  const { ca } = await (await loadConnection(options)).tls()
  if (ca === undefined)
    throw new Error('the kubeconfig names no certificate authority, which pods need to find the API server')
  const client = await createKubeClient({ ...options, userAgent: 'lateen-controllers', log })
  const scheduler =
    schedulerKubeconfig === undefined
      ? client
      : await createKubeClient({ kubeconfig: schedulerKubeconfig, userAgent: 'lateen-scheduler', log })
  const stopping = new Promise<void>((resolve) => {
    process.once('SIGINT', () => resolve())
    process.once('SIGTERM', () => resolve())
  })
  const controllers = await Promise.race([startControllers({ client, scheduler, log, rootCertificates: ca }), stopping])
  await stopping
  if (controllers !== undefined) await controllers[Symbol.asyncDispose]()
  await scheduler.close()
  await client.close()
  await logging.flush()
}
