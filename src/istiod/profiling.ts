// Profiles of the running process for its operators: where its time goes, and who allocates what is held. Names of functions and sizes, no contents.
import type { IncomingMessage } from 'node:http'
import { Session } from 'node:inspector/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { jsonReply, type Reply, textReply } from './http-server.ts'

type Profile = (session: Session, ms: number, signal: AbortSignal) => Promise<unknown>

const profiles: Readonly<Record<string, Profile>> = {
  async profile(session, ms, signal) {
    await session.post('Profiler.enable')
    await session.post('Profiler.start')
    await sleep(ms, undefined, { signal })
    return (await session.post('Profiler.stop')).profile
  },
  async heap(session, ms, signal) {
    await session.post('HeapProfiler.startSampling')
    await sleep(ms, undefined, { signal })
    return (await session.post('HeapProfiler.stopSampling')).profile
  },
}

export const profileNames: readonly string[] = Object.keys(profiles).sort()

const longestSeconds = 300

export interface Profiler {
  /** Takes the profile of that name for so many seconds; undefined when there is none. One at a time. */
  take(name: string, request: IncomingMessage, query: URLSearchParams): Promise<Reply> | undefined
}

export function createProfiler(): Profiler {
  let isTaking = false
  return {
    take(name, request, query) {
      const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined
      return profile === undefined ? undefined : takeOne(profile, request, query)
    },
  }

  async function takeOne(profile: Profile, request: IncomingMessage, query: URLSearchParams): Promise<Reply> {
    const seconds = Number(query.get('seconds') ?? '30')
    if (!(seconds > 0 && seconds <= longestSeconds)) {
      return textReply(400, `seconds: expected a number up to ${longestSeconds}\n`)
    }
    if (isTaking) return textReply(409, 'another profile is being taken\n')
    isTaking = true
    const left = new AbortController()
    const leave = (): void => left.abort()
    request.socket.once('close', leave)
    const session = new Session()
    session.connect()
    try {
      return jsonReply(await profile(session, seconds * 1000, left.signal))
    } catch (error) {
      if (left.signal.aborted) return textReply(499, '')
      throw error
    } finally {
      request.socket.off('close', leave)
      session.disconnect()
      isTaking = false
    }
  }
}
