// The headers of an answer to a CONNECT.
import { type BaggageSource, buildBaggage } from './baggage.ts'

/** Baggage of the local workload on success, when it is switched on; nothing on errors. */
export function responseHeaders(
  local: BaggageSource,
  status: number,
  sendBaggage: boolean,
): Readonly<Record<string, string>> {
  const baggage = status === 200 && sendBaggage ? buildBaggage(local) : ''
  return baggage === '' ? {} : { baggage }
}
