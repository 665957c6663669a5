// JSON patch (RFC 6902) with the answers that Kubernetes gives.
import { applyPatch, type Operation } from 'rfc6902'
import { ApiError, badRequest } from '../errors.ts'
import { clone, isObject } from '../json.ts'

const operations: readonly unknown[] = ['add', 'remove', 'replace', 'move', 'copy', 'test']
const maxOperations = 10_000

/** The target with the patch applied; the target is not changed. Throws 400 for a malformed patch, 422 for one that does not fit. */
export function jsonPatch(target: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw badRequest('a JSON patch must be an array of operations')
  if (patch.length > maxOperations) throw badRequest(`a JSON patch may have at most ${maxOperations} operations`)
  for (const operation of patch) {
    if (!isObject(operation) || !operations.includes(operation.op) || typeof operation.path !== 'string') {
      throw badRequest(`error decoding patch: not an operation: ${JSON.stringify(operation)}`)
    }
  }
  const result: unknown = clone(target)
  const failures = applyPatch(result, clone(patch) as Operation[])
  const index = failures.findIndex((failure) => failure !== null)
  if (index < 0) return result
  const text = `operation ${index} (${patch[index].op} ${patch[index].path}): ${failures[index]?.message}`
  throw new ApiError(422, 'Invalid', `the server rejected our request due to an error in our request: ${text}`, {})
}
