// POST /logging: shows and changes the log filter.
import { LogFilterError, type Logging, parseLogFilter } from '../../observability/index.ts'
import type { Handle, HttpAnswer } from './http-server.ts'

const help = `
usage: POST /logging\t\t\t\t\t\t(To list current level)
usage: POST /logging?level=<level>\t\t\t\t(To change global levels)
usage: POST /logging?level={scope1}={level1},{scope2}={level2}\t(To change specific scopes' levels)
usage: POST /logging?reset[&level=...]\t\t\t(To go back to the initial levels, then change)

level: one of off, error, warn, info, debug, trace
`

export function serveLogging(logging: Logging): Handle {
  const text = (status: number, body: string): HttpAnswer => ({
    status,
    contentType: 'text/plain; charset=utf-8',
    body,
  })
  return ({ method, query }) => {
    if (method !== 'POST') return text(405, `Invalid HTTP method\n${help}`)
    const level = query.get('level')
    if (level !== null && level !== '') {
      try {
        // Nothing changes, not even by the reset, unless the whole of it can be read.
        parseLogFilter(level)
      } catch (error) {
        if (error instanceof LogFilterError) return text(400, `Invalid level provided: ${level}\n${help}`)
        throw error
      }
    }
    if (query.has('reset')) logging.resetFilter()
    if (level !== null && level !== '') logging.addToFilter(level)
    return text(200, `current log level is ${logging.filterText()}\n`)
  }
}
