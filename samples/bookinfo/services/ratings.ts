// Stars of each reader of a book.
import { idOf, serve } from './server.ts'

serve('ratings', ({ url }) => {
  const id = idOf(url, 'ratings')
  return id === undefined ? undefined : { body: { id, ratings: { first: 5, second: 4 } } }
})
