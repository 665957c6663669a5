// What is wrong with an object of a mesh kind, by its published schema.
import {
  type CustomResourceDefinition,
  type KubeObject,
  loadMeshCrds,
  type Resource,
  validateAgainst,
} from '../api/index.ts'
import type { FieldProblem } from './problems.ts'

export type FindProblems = (resource: Resource, object: KubeObject) => readonly FieldProblem[]

/** A function that names the fields of an object that don't fit the schema of its resource. Unknown fields are no problem. */
export async function loadSchemaProblems(): Promise<FindProblems> {
  const crds = new Map((await loadMeshCrds()).map((crd) => [crd.metadata.name, crd]))
  return (resource, object) => {
    const schema = schemaOf(crds.get(`${resource.plural}.${resource.group}`), resource.version)
    if (schema === undefined) return []
    return validateAgainst(schema, { ...object, status: undefined }).map(({ field = '', message }) => ({
      field,
      message,
    }))
  }
}

function schemaOf(crd: CustomResourceDefinition | undefined, version: string) {
  return crd?.spec?.versions.find(({ name }) => name === version)?.schema?.openAPIV3Schema
}
