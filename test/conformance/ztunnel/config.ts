// Topic config.
import assert from 'node:assert/strict'
import { loadConfig, type ZtunnelConfig } from '../../../src/ztunnel/config/index.ts'
import type { Data, TopicRunner } from './topic.ts'

export const runConfig: TopicRunner = (one) => {
  if (one.table !== undefined) {
    for (const { env, ...expect } of one.table) compare(load({ env }), expect)
    return
  }
  if (one.expect.error !== undefined) {
    assert.throws(
      () => load(one),
      (error: Error) => error.message.includes(one.expect.error),
    )
    return
  }
  compare(load(one), one.expect)
}

function load(one: Data): ZtunnelConfig {
  return loadConfig({
    env: one.env ?? {},
    machineCpus: one.machineCpus ?? 4,
    knowsKeyExchange: () => true,
    readFile: (path) =>
      path === './etc/istio/config/mesh' && one.meshFile !== undefined ? JSON.stringify(one.meshFile) : undefined,
  })
}

function compare(config: ZtunnelConfig, expect: Data): void {
  const actual: Data = {
    ...config,
    xdsAddress: config.xds?.address,
    caAddress: config.ca?.address,
    xdsHeaders: config.xds?.headers,
    caHeaders: config.ca?.headers,
    packetMark: config.packetMark ?? null,
    dnsProxy: config.dnsProxyEnabled,
  }
  for (const [key, value] of Object.entries(expect as Data)) {
    if (key === 'absentMetadata') {
      for (const name of value as string[]) assert.equal(config.proxyMetadata[name], undefined)
    } else assert.deepEqual(actual[key], value, key)
  }
}
