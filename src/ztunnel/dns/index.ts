// The DNS proxy of pods: answers names of mesh services itself, forwards the rest.
export { answer, type DnsAnswerOptions, type DnsDecision, type DnsQuestion, type DnsRecord } from './answer.ts'
export { DnsError } from './errors.ts'
export { createForwarder, type Forwarder } from './forwarder.ts'
export { candidateNames, expandName, podSearchDomains, wildcardForms } from './names.ts'
export { parseResolvConf, type ResolvConf } from './resolv-conf.ts'
export { createDnsAnswerer, type DnsAnswererOptions } from './server.ts'
export { createExchange, type Exchange } from './transport.ts'
