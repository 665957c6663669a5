// Suite ca: the certificate authority, its authenticators, material and rotation.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { ConformanceCase, ListCases } from './adapter.ts'
import { authenticationKinds } from './ca/authentication.ts'
import { runCreateCertificate } from './ca/create-certificate.ts'
import { type Expected, type Input, type RunTable, runTable } from './ca/data.ts'
import { identityKinds } from './ca/identities.ts'
import { materialKinds } from './ca/material.ts'

const tables: Readonly<Record<string, RunTable>> = { ...authenticationKinds, ...identityKinds, ...materialKinds }

export const cases: ListCases = (suiteDir) =>
  readdirSync(suiteDir, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }): ConformanceCase => {
      const read = (file: string): unknown => parse(readFileSync(join(suiteDir, name, file), 'utf8'))
      const input = read('input.yaml') as Input
      const expected = read('expected.yaml') as Expected
      if (input.kind === 'createCertificate') return { name, run: () => runCreateCertificate(input, expected) }
      const table = tables[input.kind]
      if (table === undefined) return { name, pending: `kind ${input.kind} is not known`, run: () => {} }
      return { name, run: () => runTable(input, expected, table) }
    })
