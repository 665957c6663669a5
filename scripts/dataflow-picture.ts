// Draws the dataflow of the control plane anew in docs/architecture.md.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dataflowPicture, withPicture } from '../test/support/dataflow-picture.ts'

const page = join(import.meta.dirname, '../docs/architecture.md')
writeFileSync(page, withPicture(readFileSync(page, 'utf8'), dataflowPicture()))
