// The dataflow engine: keyed collections of immutable values, derived from each other by pure functions whose reads are
// recorded. Inputs change in transactions; each transaction gives one wave in which exactly the runs whose reads changed
// are computed again, in dependency order, and each subscriber hears once what changed.

export type { GraphOptions } from './engine.ts'
export {
  CollectionBusyError,
  CollectionCycleError,
  type CollectionReport,
  ForeignCollectionError,
} from './errors.ts'
export { createGraph, type Graph } from './graph.ts'
export type { CollectionDescription } from './introspection.ts'
export type { CollectionOptions, DerivedOptions, OnDemandOptions } from './options.ts'
export { type Pace, pacedBy } from './pace.ts'
export { pictureOf } from './picture.ts'
export type * from './types.ts'
