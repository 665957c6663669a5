// The orderly end of a pod's containers: hook, SIGTERM, grace, SIGKILL; one stage after the other.
import { execAndWait } from './exec.ts'
import type { PodContainer } from './pod-container.ts'
import { portNumber, runProbe } from './probe.ts'
import type { Container } from './types.ts'

type Hook = NonNullable<NonNullable<Container['lifecycle']>['preStop']>

/** Runs a lifecycle hook; resolves with why it failed, or undefined. */
export async function runHook(
  hook: Hook,
  container: PodContainer,
  ip: string,
  timeoutMs: number,
): Promise<string | undefined> {
  const process = container.running
  if (process === undefined) return undefined
  if (hook.sleep !== undefined) {
    await new Promise((resolve) => setTimeout(resolve, Math.min(Number(hook.sleep?.seconds) * 1000, timeoutMs)))
    return undefined
  }
  const spec = container.planned.container
  const action = hook.tcpSocket
    ? { tcpSocket: { ...hook.tcpSocket, port: portNumber(hook.tcpSocket.port, spec) } }
    : hook
  const exec = (argv: readonly string[], limitMs: number) => execAndWait(process, argv, limitMs)
  const outcome = await runProbe(action, { ip, container: spec, exec }, timeoutMs)
  return outcome.success ? undefined : outcome.message
}

/**
 * Ends the stages in order, the containers of one stage together. What still runs at the deadline is killed, and at
 * once when `hurry` says so.
 */
export async function endPod(
  stages: readonly (readonly PodContainer[])[],
  ip: string,
  deadlineMs: number,
  hurry: () => boolean,
): Promise<void> {
  for (const stage of stages) {
    await Promise.all(stage.map((container) => endContainer(container, ip, deadlineMs, hurry)))
  }
}

async function endContainer(
  container: PodContainer,
  ip: string,
  deadlineMs: number,
  hurry: () => boolean,
): Promise<void> {
  const hook = container.planned.container.lifecycle?.preStop
  const left = () => deadlineMs - Date.now()
  if (container.running !== undefined && hook !== undefined && left() > 0) await runHook(hook, container, ip, left())
  await container.running?.signal('SIGTERM')
  let killed = false
  while (container.running !== undefined && !(await container.noticeEnd())) {
    if (!killed && (left() <= 0 || hurry())) {
      await container.running?.kill()
      killed = true
    }
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}
