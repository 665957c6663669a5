import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { onStop } from './stop-listeners.ts'

test('all who still listen are told once, over one listener of the signal', () => {
  const stopping = new AbortController()
  const told: string[] = []
  onStop(stopping.signal, () => told.push('first'))
  const end = onStop(stopping.signal, () => told.push('second'))
  onStop(stopping.signal, () => told.push('third'))
  end()
  assert.equal(getEventListeners(stopping.signal, 'abort').length, 1)
  stopping.abort()
  stopping.abort()
  assert.deepEqual(told, ['first', 'third'])
})

test('a listener may end another while all are told', () => {
  const stopping = new AbortController()
  const told: string[] = []
  const ends: (() => void)[] = []
  onStop(stopping.signal, () => {
    told.push('first')
    for (const end of ends) end()
  })
  ends.push(onStop(stopping.signal, () => told.push('second')))
  stopping.abort()
  assert.deepEqual(told, ['first'])
})

test('who comes after the stop is told at once', () => {
  let told = false
  onStop(AbortSignal.abort(), () => {
    told = true
  })
  assert.equal(told, true)
})
