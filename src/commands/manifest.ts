// `lateen manifest`: what a cluster needs before the mesh runs in it, to be applied by kubectl.
import { Command, InvalidArgumentError } from 'commander'
import { stringify } from 'yaml'
import {
  controlPlaneRights,
  dnsLabelFault,
  dnsSubdomainFault,
  type KubeObject,
  loadMeshCrds,
  nodeAgentRights,
  nodeProxyRights,
  remoteReaderRights,
} from '../api/index.ts'
import { collect } from './manifests.ts'

interface RightsOptions {
  readonly istioNamespace: string
  readonly signer?: readonly string[]
  readonly trustBundles?: boolean
}

export function create(): Command {
  const command = new Command('manifest').description('Print objects that a cluster needs for the mesh, as YAML.')
  command
    .command('crds')
    .description('Print the CustomResourceDefinitions of Istio’s kinds.')
    .option('--gateway-api', 'those of the Gateway API, too, for clusters without')
    .action(async ({ gatewayApi = false }: { gatewayApi?: boolean }) => {
      const crds = await loadMeshCrds()
      print(gatewayApi ? crds : crds.filter(({ spec }) => spec?.group.endsWith('.istio.io')))
    })
  command
    .command('rights')
    .description('Print the service accounts of the mesh, with the rights that each needs.')
    .option('-i, --istioNamespace <name>', 'namespace of the mesh', parseNamespace, 'istio-system')
    .option('--signer <name>', 'a signer of the cluster that signs for the mesh; may be repeated', collectSigner)
    .option('--trust-bundles', 'the roots are handed out as a ClusterTrustBundle')
    .action(({ istioNamespace: namespace, signer = [], trustBundles = false }: RightsOptions) => {
      print([
        ...controlPlaneRights({ namespace, signers: signer, trustBundles }),
        ...nodeProxyRights(namespace),
        ...nodeAgentRights(namespace),
        ...remoteReaderRights(namespace),
      ])
    })
  return command.addHelpText(
    'after',
    '\nExample:\n  lateen manifest crds --gateway-api | kubectl apply --server-side -f -\n  lateen manifest rights | kubectl apply -f -',
  )
}

function print(objects: readonly KubeObject[]): void {
  for (const object of objects) process.stdout.write(`---\n${stringify(object, { aliasDuplicateObjects: false })}`)
}

function parseNamespace(text: string): string {
  if (dnsLabelFault(text) === undefined) return text
  throw new InvalidArgumentError('expected the name of a namespace: lower case letters, digits and hyphens')
}

/** Signers are named by a domain and a path: `example.com/mesh`. */
function collectSigner(text: string, before?: readonly string[]): readonly string[] {
  const [domain = '', path] = text.split('/', 2)
  if (!path || !domain.includes('.') || dnsSubdomainFault(domain) !== undefined) {
    throw new InvalidArgumentError('expected DOMAIN/NAME, such as example.com/mesh')
  }
  return collect(text, before)
}
