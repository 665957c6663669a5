// Policy routing in a pod: replies on connections with a preserved source address go back to the proxy over loopback.
import { replyRoute } from './constants.ts'
import { failureOf, mustRun, type RunTool } from './exec.ts'

async function usesIpv6(run: RunTool, netns: string | undefined): Promise<boolean> {
  const disabled = await run('cat', ['/proc/sys/net/ipv6/conf/lo/disable_ipv6'], netns === undefined ? {} : { netns })
  return disabled.code === 0 && disabled.stdout.trim() !== '1'
}

const rule = ['fwmark', replyRoute.mark, 'lookup', replyRoute.table, 'pref', replyRoute.preference]

/** Adds the route and the rule; both may exist. */
export async function addReplyRoutes(run: RunTool, enableIpv6: boolean, netns?: string): Promise<void> {
  const where = netns === undefined ? {} : { netns }
  const families = enableIpv6 && (await usesIpv6(run, netns)) ? (['-4', '-6'] as const) : (['-4'] as const)
  for (const family of families) {
    const everywhere = family === '-4' ? '0.0.0.0/0' : '::/0'
    const local = ['local', everywhere, 'dev', 'lo', 'scope', 'host', 'table', replyRoute.table]
    await mustRun(run, 'ip', [family, 'route', 'replace', ...local], where)
    const addRule = [family, 'rule', 'add', ...rule]
    const added = await run('ip', addRule, where)
    if (added.code !== 0 && !added.stderr.includes('File exists')) throw failureOf('ip', addRule, added)
  }
}

/** Removes what addReplyRoutes added; what is not there is fine. */
export async function removeReplyRoutes(run: RunTool, netns?: string): Promise<void> {
  const where = netns === undefined ? {} : { netns }
  for (const family of ['-4', '-6']) {
    await run('ip', [family, 'rule', 'del', ...rule], where)
    await run('ip', [family, 'route', 'flush', 'table', replyRoute.table], where)
  }
}
