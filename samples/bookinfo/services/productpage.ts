// The page of a book: details and reviews put together.
import { getJson, messageOf, serve } from './server.ts'

const detailsUrl = process.env.DETAILS_URL ?? 'http://details:9080'
const reviewsUrl = process.env.REVIEWS_URL ?? 'http://reviews:9080'

interface Details {
  readonly title?: string
  readonly author?: string
}

interface Reviews {
  readonly version?: string
  readonly reviews?: readonly { readonly reader: string; readonly text: string }[]
  readonly stars?: {
    readonly color?: string
    readonly ratings?: Readonly<Record<string, number>>
    readonly error?: string
  }
}

type OrError<T> = T & { readonly error?: string }

async function part<T>(url: string): Promise<OrError<Partial<T>>> {
  try {
    return (await getJson<Partial<T>>(url)) as OrError<Partial<T>>
  } catch (error) {
    return { error: messageOf(error) } as OrError<Partial<T>>
  }
}

function page(details: OrError<Details>, { reviews = [], stars, error, version }: OrError<Reviews>): string {
  const text = (value: string): string => value.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
  const rows = reviews.map(({ reader, text: said }) => {
    const count = stars?.ratings?.[reader] ?? 0
    return `<li>${text(said)} <span style="color:${stars?.color ?? 'black'}">${'★'.repeat(count)}</span></li>`
  })
  const title = details.error === undefined ? `${details.title}, by ${details.author}` : `details: ${details.error}`
  return `<!doctype html><meta charset="utf-8"><title>Bookinfo</title><h1>${text(title)}</h1>
<h2>Reviews ${text(version ?? '')}</h2>${error === undefined ? `<ul>${rows.join('')}</ul>` : `<p>${text(error)}</p>`}
<p>${text(stars?.error ?? '')}</p>\n`
}

serve('productpage', async ({ url }) => {
  if (url.pathname !== '/productpage' && url.pathname !== '/api/v1/products/0') return undefined
  const [details, reviews] = await Promise.all([
    part<Details>(`${detailsUrl}/details/0`),
    part<Reviews>(`${reviewsUrl}/reviews/0`),
  ])
  if (url.pathname === '/productpage') return { type: 'text/html', body: page(details, reviews) }
  return { body: { details, reviews } }
})
