// The dataflow engine: keyed collections of immutable values, derived from each other by pure functions whose reads are
// recorded. Inputs change in transactions; each transaction gives one wave in which exactly the runs whose reads changed
// are computed again, in dependency order, and each subscriber hears once what changed.
export {
  CollectionBusyError,
  CollectionCycleError,
  type CollectionReport,
  ForeignCollectionError,
} from './errors.ts'
export {
  type CollectionOptions,
  createGraph,
  type DerivedOptions,
  type Graph,
  type GraphOptions,
  type OnDemandOptions,
} from './graph.ts'
export type { CollectionDescription } from './introspection.ts'
export { type Pace, pacedBy } from './pace.ts'
export type * from './types.ts'
