// The commands, with the file that holds each one. A file is loaded only when its command runs.
import type { Command } from 'commander'

export interface CommandEntry {
  readonly name: string
  readonly summary: string
  /** A second, shorter name. */
  readonly alias?: string
  /** Not listed by help: run by other processes, not by people. */
  readonly hidden?: boolean
  readonly load: () => Promise<{ create: () => Command }>
}

export const commands: readonly CommandEntry[] = [
  // In the order that help shows: what people run first, then the processes.
  { name: 'up', summary: 'Run a mesh on this machine', load: () => import('./up.ts') },
  { name: 'down', summary: 'End the mesh of this machine and remove its state', load: () => import('./down.ts') },
  {
    name: 'status',
    summary: 'Show processes, pods and which pods are in the mesh',
    load: () => import('./status.ts'),
  },
  { name: 'apply', summary: 'Apply manifests', load: () => import('./apply.ts') },
  { name: 'get', summary: 'Print objects', load: () => import('./get.ts') },
  { name: 'delete', summary: 'Delete objects', load: () => import('./delete.ts') },
  { name: 'exec', summary: 'Run a command in a container', load: () => import('./exec.ts') },
  { name: 'logs', summary: 'Print the log of a container', load: () => import('./logs.ts') },
  {
    name: 'proxy-status',
    alias: 'ps',
    summary: 'Show the proxies of the mesh and whether they are in sync',
    load: () => import('./proxy-status.ts'),
  },
  {
    name: 'ztunnel-config',
    alias: 'zc',
    summary: 'Show what a node proxy knows',
    load: () => import('./ztunnel-config.ts'),
  },
  {
    name: 'remote-clusters',
    summary: 'Show the clusters that each control plane reads',
    load: () => import('./remote-clusters.ts'),
  },
  {
    name: 'manifest',
    summary: 'Print what a cluster needs for the mesh: CRDs, accounts and rights',
    load: () => import('./manifest.ts'),
  },
  { name: 'kubeconfig', summary: 'Print the path of the kubeconfig', load: () => import('./kubeconfig.ts') },
  { name: 'sample', summary: 'Run a service of the bookinfo sample', hidden: true, load: () => import('./sample.ts') },
  { name: 'version', summary: 'Print the version', load: () => import('./version.ts') },
  { name: 'discovery', summary: 'Control plane', load: () => import('./discovery.ts') },
  { name: 'ztunnel', summary: 'L4 node proxy', load: () => import('./ztunnel.ts') },
  {
    name: 'cni-agent',
    summary: 'Node agent: enrols pods and installs the CNI plugin',
    load: () => import('./cni-agent.ts'),
  },
  { name: 'cni', summary: 'CNI plugin, run by the container runtime', hidden: true, load: () => import('./cni.ts') },
  { name: 'cni-ptp', summary: 'CNI plugin for hosts without any', hidden: true, load: () => import('./cni-ptp.ts') },
  { name: 'node', summary: 'Run the pods of one node', hidden: true, load: () => import('./node.ts') },
  { name: 'dns', summary: 'Cluster DNS', hidden: true, load: () => import('./dns.ts') },
  {
    name: 'apiserver',
    summary: 'Run the embedded Kubernetes-compatible API',
    hidden: true,
    load: () => import('./apiserver.ts'),
  },
  {
    name: 'controllers',
    summary: 'Run the scheduler and the controllers of the embedded cluster',
    hidden: true,
    load: () => import('./controllers.ts'),
  },
]
