// Who must know of a client before it is served, for as long as it is there: what the client sends waits until then.
import type { ProxyNode } from './node.ts'

export interface AttendedClient {
  /** Of the connection. */
  readonly id: string
  readonly node: ProxyNode
  /** Verified identities (SPIFFE ids); empty where clients are not authenticated. */
  readonly identities: readonly string[]
}

export interface HealthReport {
  readonly isHealthy: boolean
  /** What is wrong. */
  readonly message: string
}

export interface Attendance {
  /** The client says how its workload is. */
  health(report: HealthReport): void
  /** The client is gone. */
  end(): void
}

/** Undefined for clients that are of no concern. Rejects with a StreamError to end the stream. */
export type Attend = (client: AttendedClient) => Promise<Attendance | undefined>

export interface StreamAttendance {
  begin(client: AttendedClient): void
  /** Works now, or once the client is attended. */
  whenAttended(work: () => void): void
  health(report: HealthReport): void
  end(): void
}

export function attendStream(
  attend: Attend | undefined,
  outlet: { hold(on: boolean): void; fail(error: unknown): void },
): StreamAttendance {
  let attendance: Attendance | undefined
  let waiting: (() => void)[] | undefined
  let ended = false

  async function follow(client: AttendedClient, begin: Attend): Promise<void> {
    const begun = await begin(client)
    if (ended) {
      begun?.end()
      return
    }
    attendance = begun
    const due = waiting ?? []
    waiting = undefined
    outlet.hold(false)
    for (const work of due) work()
  }

  return {
    begin(client) {
      if (attend === undefined) return
      waiting = []
      outlet.hold(true)
      follow(client, attend).catch((error: unknown) => outlet.fail(error))
    },
    whenAttended(work) {
      if (waiting === undefined) work()
      else waiting.push(work)
    },
    health: (report) => attendance?.health(report),
    end() {
      if (ended) return
      ended = true
      waiting = []
      attendance?.end()
    },
  }
}
