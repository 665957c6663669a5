// Bodies are checked to have the shape of their kind before anything reads into them, as decoding into a typed object would.
import { type KindDefinition, type KubeObject, validateAgainst } from '../../../api/index.ts'
import { ApiError, badRequest } from '../errors.ts'
import { isObject, type JsonObject } from '../json.ts'

const metadataShape: Readonly<Record<string, (value: unknown) => boolean>> = {
  name: isText,
  generateName: isText,
  namespace: isText,
  uid: isText,
  resourceVersion: isText,
  labels: isTextMap,
  annotations: isTextMap,
  finalizers: (value) => Array.isArray(value) && value.every(isText),
  ownerReferences: (value) => Array.isArray(value) && value.every(isObject),
  managedFields: (value) => Array.isArray(value) && value.every(isObject),
}

/** Throws ApiError 400 for fields of the wrong type. */
export function refuseWrongShape(kind: KindDefinition, object: KubeObject): void {
  const wrong = Object.entries(metadataShape)
    .filter(([key, fits]) => {
      const value = (object.metadata as unknown as JsonObject)[key]
      return value !== undefined && !fits(value)
    })
    .map(([key]) => ({
      field: `metadata.${key}`,
      message: 'has the wrong type',
      text: `metadata.${key} has the wrong type`,
    }))
  if (kind.custom !== true && kind.schema !== undefined) {
    const causes = validateAgainst(kind.schema, object, '', { nullIsAbsent: true, duplicatesAllowed: true })
    for (const { reason, field, message } of causes) {
      if (reason === 'FieldValueTypeInvalid' && !field.startsWith('metadata.'))
        wrong.push({ field, message, text: `${field}: ${message}` })
    }
  }
  if (wrong.length === 0) return
  const texts = wrong.map(({ text }) => text).join(', ')
  throw new ApiError(
    400,
    'BadRequest',
    `${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}: ${texts}`,
    {
      kind: kind.plural,
      causes: wrong.map(({ field, message }) => ({ reason: 'FieldValueTypeInvalid', field, message })),
    },
  )
}

/** For built-in kinds `null` is the same as an absent field: removes it in place. Throws ApiError 400 for null in a list. */
export function dropNulls(value: unknown, path = ''): void {
  if (Array.isArray(value)) {
    value.forEach((item, index) => {
      if (item === null) throw badRequest(`${path}[${index}]: null is not allowed in a list`)
      dropNulls(item, `${path}[${index}]`)
    })
  } else if (isObject(value)) {
    for (const [key, item] of Object.entries(value)) {
      if (item === null) delete value[key]
      else dropNulls(item, path === '' ? key : `${path}.${key}`)
    }
  }
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function isTextMap(value: unknown): boolean {
  return isObject(value) && Object.values(value).every(isText)
}
