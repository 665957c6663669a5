import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLogging, formatJson, type LogSink, parseLogFilter, parseOutputLevels, quoted } from './index.ts'

const time = new Date('2026-01-02T03:04:05.006Z')

function memorySink(): LogSink & { readonly lines: string[] } {
  const lines: string[] = []
  return { lines, write: (line) => void lines.push(line), dropped: 0, flush: async () => {}, flushSync: () => {} }
}

test('a text line has time, level, scope, message and fields separated by tabs', () => {
  const sink = memorySink()
  const log = createLogging({ sink, now: () => time }).scope('access')
  log.info('connection complete', {
    'src.addr': '10.1.0.7:41000',
    'src.workload': quoted('web-0'),
    'dst.service': undefined,
    bytes_sent: 84,
    error: new Error('io error: "x"'),
  })
  assert.deepEqual(sink.lines, [
    '2026-01-02T03:04:05.006000Z\tinfo\taccess\tconnection complete\tsrc.addr=10.1.0.7:41000 src.workload="web-0" bytes_sent=84 error="io error: \\"x\\""\n',
  ])
})

test('the default scope is not printed', () => {
  const sink = memorySink()
  createLogging({ sink, now: () => time })
    .scope('default')
    .warn('hello')
  assert.deepEqual(sink.lines, ['2026-01-02T03:04:05.006000Z\twarn\thello\n'])
})

test('a message cannot forge a second line', () => {
  const sink = memorySink()
  createLogging({ sink, now: () => time })
    .scope('x')
    .error('a\nb', { k: 'c\nd' })
  assert.deepEqual(sink.lines, ['2026-01-02T03:04:05.006000Z\terror\tx\ta\\nb\tk="c\\nd"\n'])
})

test('a JSON line keeps its own keys before the fields', () => {
  const sink = memorySink()
  const format = formatJson('message')
  createLogging({ sink, format, now: () => time })
    .scope('access')
    .info('done', { n: 1, level: 'forged', q: quoted('v') })
  assert.deepEqual(sink.lines, [
    '{"level":"info","time":"2026-01-02T03:04:05.006000Z","scope":"access","message":"done","n":1,"q":"v"}\n',
  ])
})

test('the most specific scope prefix decides the level', () => {
  const logging = createLogging({
    sink: memorySink(),
    filter: parseLogFilter('warn,proxy=debug,ztunnel::proxy::inbound=off'),
  })
  assert.equal(logging.scope('state').level, 'warn')
  assert.equal(logging.scope('proxy::outbound').level, 'debug')
  assert.equal(logging.scope('proxy::inbound').level, 'off')
  assert.equal(logging.scope('proxyish').level, 'warn')
})

test('levels change while the process runs, and go back', () => {
  const sink = memorySink()
  const logging = createLogging({ sink })
  const log = logging.scope('dns')
  log.debug('unseen')
  logging.addToFilter('dns=debug')
  assert.equal(logging.filterText(), 'dns=debug,info')
  log.debug('seen')
  logging.resetFilter()
  log.debug('unseen')
  assert.equal(sink.lines.length, 1)
  assert.throws(() => logging.addToFilter('dns'), { code: 'INVALID_LOG_FILTER' })
  assert.throws(() => logging.addToFilter('dns=loud'), { code: 'INVALID_LOG_FILTER' })
})

test('output levels of the control plane', () => {
  assert.deepEqual(
    [...parseOutputLevels('default:info,grpc:none')],
    [
      ['', 'info'],
      ['default', 'info'],
      ['grpc', 'off'],
    ],
  )
  assert.deepEqual([...parseOutputLevels('default:info,all:debug')], [['', 'debug']])
  assert.throws(() => parseOutputLevels('a:b:c'), { message: "invalid output level format 'a:b:c'" })
  assert.throws(() => parseOutputLevels('x'), { message: "invalid output level 'x'" })
  assert.throws(() => parseOutputLevels(''), { code: 'INVALID_LOG_FILTER' })
})
