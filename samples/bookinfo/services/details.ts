// Facts about a book.
import { idOf, serve } from './server.ts'

serve('details', ({ url }) => {
  const id = idOf(url, 'details')
  if (id === undefined) return undefined
  return { body: { id, author: 'Joseph Conrad', year: 1917, type: 'paperback', pages: 156, title: 'The Shadow-Line' } }
})
