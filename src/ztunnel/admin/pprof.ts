// Profiles of V8 as pprof messages (github.com/google/pprof, proto/profile.proto).

import type { HeapProfiler, Profiler, Runtime } from 'node:inspector/promises'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import type { OfThread } from '../profiling/index.ts'

// Field numbers of perftools.profiles.Profile and its parts.
const profileFields = {
  sampleType: 1,
  sample: 2,
  location: 4,
  function: 5,
  stringTable: 6,
  timeNanos: 9,
  durationNanos: 10,
  periodType: 11,
  period: 12,
}

/** A place in the code and the samples taken there, with the places that called it. */
interface Frame {
  readonly id: number
  readonly parent: number | undefined
  readonly functionName: string
  readonly url: string
  readonly line: number
  /** One value for each sample type; absent: nothing was sampled right here. */
  readonly values?: readonly number[]
}

type ValueType = readonly [type: string, unit: string]

/** `periodNanos`: time between two samples. Each thread is the root of its own calls. */
export function encodePprof(threads: readonly OfThread<Profiler.Profile>[], periodNanos: number): Uint8Array {
  const frames: Frame[] = []
  for (const { thread, profile } of threads) {
    const root = frames.reduce((last, { id }) => Math.max(last, id), 0) + 1
    frames.push(rootOf(thread, root))
    const counts = new Map<number, number>()
    for (const id of profile.samples ?? []) counts.set(id, (counts.get(id) ?? 0) + 1)
    const parents = new Map(
      profile.nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node.id] as const)),
    )
    for (const { id, callFrame } of profile.nodes) {
      const count = counts.get(id)
      const parent = parents.get(id)
      frames.push({
        id: root + id,
        parent: parent === undefined ? root : root + parent,
        ...placeOf(callFrame),
        ...(count === undefined ? {} : { values: [count, count * periodNanos] }),
      })
    }
  }
  const durations = threads.map(({ profile }) => profile.endTime - profile.startTime)
  return encode(frames, {
    types: [
      ['samples', 'count'],
      ['cpu', 'nanoseconds'],
    ],
    periodType: ['cpu', 'nanoseconds'],
    period: periodNanos,
    durationNanos: Math.round(Math.max(0, ...durations) * 1000),
  })
}

/** `intervalBytes`: bytes allocated between two samples. Each thread is the root of its own calls. */
export function encodeHeapPprof(
  threads: readonly OfThread<HeapProfiler.SamplingHeapProfile>[],
  intervalBytes: number,
): Uint8Array {
  const frames: Frame[] = []
  for (const { thread, profile } of threads) {
    const root = frames.length + 1
    frames.push(rootOf(thread, root))
    const pending = [{ node: profile.head, parent: root }]
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const { node, parent } = next
      const sampled = node.selfSize === 0 ? {} : { values: [node.selfSize] }
      const id = frames.length + 1
      frames.push({ id, parent, ...placeOf(node.callFrame), ...sampled })
      for (const child of node.children) pending.push({ node: child, parent: id })
    }
  }
  const types: readonly ValueType[] = [['inuse_space', 'bytes']]
  return encode(frames, { types, periodType: ['space', 'bytes'], period: intervalBytes })
}

const rootOf = (thread: string, id: number): Frame => ({
  id,
  parent: undefined,
  functionName: thread,
  url: '',
  line: 0,
})

const placeOf = ({ functionName, url, lineNumber }: Runtime.CallFrame) => ({ functionName, url, line: lineNumber + 1 })

function encode(
  frames: readonly Frame[],
  about: {
    readonly types: readonly ValueType[]
    readonly periodType: ValueType
    readonly period: number
    readonly durationNanos?: number
  },
): Uint8Array {
  const strings = new Map<string, number>([['', 0]])
  const text = (value: string): number => {
    const known = strings.get(value)
    if (known !== undefined) return known
    strings.set(value, strings.size)
    return strings.size - 1
  }
  const byId = new Map(frames.map((frame) => [frame.id, frame]))
  const out = new BinaryWriter()
  const valueType = (field: number, [type, unit]: ValueType): void =>
    message(out, field, (part) => part.uint32(tag(1)).int64(text(type)).uint32(tag(2)).int64(text(unit)))

  for (const type of about.types) valueType(profileFields.sampleType, type)
  for (const frame of frames) {
    if (frame.values === undefined) continue
    message(out, profileFields.sample, (part) => {
      let at: Frame | undefined = frame
      while (at !== undefined) {
        if (at.functionName !== '(root)') part.uint32(tag(1)).uint64(at.id)
        at = at.parent === undefined ? undefined : byId.get(at.parent)
      }
      for (const value of frame.values ?? []) part.uint32(tag(2)).int64(value)
    })
  }
  for (const { id, functionName, url, line } of frames) {
    message(out, profileFields.location, (part) => {
      part.uint32(tag(1)).uint64(id)
      message(part, 4, (where) => where.uint32(tag(1)).uint64(id).uint32(tag(2)).int64(line))
    })
    message(out, profileFields.function, (part) => {
      part.uint32(tag(1)).uint64(id)
      part.uint32(tag(2)).int64(text(functionName || '(anonymous)'))
      part.uint32(tag(4)).int64(text(url))
      part.uint32(tag(5)).int64(line)
    })
  }
  valueType(profileFields.periodType, about.periodType)
  out.uint32(tag(profileFields.timeNanos)).int64(BigInt(Date.now()) * 1_000_000n)
  if (about.durationNanos !== undefined) out.uint32(tag(profileFields.durationNanos)).int64(about.durationNanos)
  out.uint32(tag(profileFields.period)).int64(about.period)
  for (const value of strings.keys()) out.uint32(tag(profileFields.stringTable, WireType.LengthDelimited)).string(value)
  return out.finish()
}

const tag = (field: number, type: WireType = WireType.Varint): number => (field << 3) | type

function message(out: BinaryWriter, field: number, write: (part: BinaryWriter) => unknown): void {
  out.uint32(tag(field, WireType.LengthDelimited)).fork()
  write(out)
  out.join()
}
