// Tables in memory that all threads of a process see. One thread writes, in transactions that become visible as a whole; the
// others read a generation of their own choosing, without locks and without a copy, and move to the next when they are told.
//
// In: keys (text), each with a value (bytes) or with a map of its own. Out: the same, by key or all of them; a handle to post to
// the readers; after each transaction the standpoint that readers move to. What a transaction does not touch is shared with the
// generation before, and what it replaces is used again once every reader has moved on.
export { SharedMemoryError, type SharedMemoryErrorCode } from './errors.ts'
export type { SharedMemoryHandle } from './memory.ts'
export { openSharedTables, type TableReader } from './reader.ts'
export type { Standpoint, TableView } from './snapshot.ts'
export {
  createSharedTables,
  type MemoryUsage,
  type SharedTables,
  type SharedTablesOptions,
  type Transaction,
} from './writer.ts'
