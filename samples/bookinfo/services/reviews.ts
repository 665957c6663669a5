// What readers say of a book. v1 says it without stars, v2 with black ones, v3 with red ones.
import { getJson, idOf, messageOf, serve } from './server.ts'

const version = process.env.VERSION ?? 'v1'
const color = { v2: 'black', v3: 'red' }[version]
const ratingsUrl = process.env.RATINGS_URL ?? 'http://ratings:9080'

async function starsOf(id: string): Promise<Record<string, unknown>> {
  if (color === undefined) return {}
  try {
    const { ratings } = await getJson<{ ratings: Record<string, number> }>(`${ratingsUrl}/ratings/${id}`)
    return { color, ratings }
  } catch (error) {
    return { color, error: `ratings are not available: ${messageOf(error)}` }
  }
}

serve(`reviews ${version}`, async ({ url }) => {
  const id = idOf(url, 'reviews')
  if (id === undefined) return undefined
  const reviews = [
    { reader: 'first', text: 'A young captain, a becalmed ship, and every page holds its breath.' },
    { reader: 'second', text: 'Short, dense, and better the second time.' },
  ]
  return { body: { id, version, reviews, stars: await starsOf(id) } }
})
