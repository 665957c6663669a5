// A CPU profile of V8 as a pprof message (github.com/google/pprof, proto/profile.proto).

import type { Profiler } from 'node:inspector/promises'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'

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

/** `periodNanos`: time between two samples. */
export function encodePprof(profile: Profiler.Profile, periodNanos: number): Uint8Array {
  const strings = new Map<string, number>([['', 0]])
  const text = (value: string): number => {
    const known = strings.get(value)
    if (known !== undefined) return known
    strings.set(value, strings.size)
    return strings.size - 1
  }
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]))
  const parents = new Map(
    profile.nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node.id] as const)),
  )
  const out = new BinaryWriter()
  const valueType = (field: number, type: string, unit: string): void =>
    message(out, field, (part) => part.uint32(tag(1)).int64(text(type)).uint32(tag(2)).int64(text(unit)))

  valueType(profileFields.sampleType, 'samples', 'count')
  valueType(profileFields.sampleType, 'cpu', 'nanoseconds')
  for (const [leaf, count] of countSamples(profile)) {
    message(out, profileFields.sample, (part) => {
      for (let id: number | undefined = leaf; id !== undefined; id = parents.get(id)) {
        if (nodes.get(id)?.callFrame.functionName !== '(root)') part.uint32(tag(1)).uint64(id)
      }
      part
        .uint32(tag(2))
        .int64(count)
        .uint32(tag(2))
        .int64(count * periodNanos)
    })
  }
  for (const { id, callFrame } of profile.nodes) {
    message(out, profileFields.location, (part) => {
      part.uint32(tag(1)).uint64(id)
      message(part, 4, (line) =>
        line
          .uint32(tag(1))
          .uint64(id)
          .uint32(tag(2))
          .int64(callFrame.lineNumber + 1),
      )
    })
    message(out, profileFields.function, (part) => {
      part.uint32(tag(1)).uint64(id)
      part.uint32(tag(2)).int64(text(callFrame.functionName || '(anonymous)'))
      part.uint32(tag(4)).int64(text(callFrame.url))
      part.uint32(tag(5)).int64(callFrame.lineNumber + 1)
    })
  }
  valueType(profileFields.periodType, 'cpu', 'nanoseconds')
  out.uint32(tag(profileFields.timeNanos)).int64(BigInt(Date.now()) * 1_000_000n)
  out.uint32(tag(profileFields.durationNanos)).int64(Math.round((profile.endTime - profile.startTime) * 1000))
  out.uint32(tag(profileFields.period)).int64(periodNanos)
  for (const value of strings.keys()) out.uint32(tag(profileFields.stringTable, WireType.LengthDelimited)).string(value)
  return out.finish()
}

function countSamples(profile: Profiler.Profile): Map<number, number> {
  const counts = new Map<number, number>()
  for (const id of profile.samples ?? []) counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}

const tag = (field: number, type: WireType = WireType.Varint): number => (field << 3) | type

function message(out: BinaryWriter, field: number, write: (part: BinaryWriter) => unknown): void {
  out.uint32(tag(field, WireType.LengthDelimited)).fork()
  write(out)
  out.join()
}
