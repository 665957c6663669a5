import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultEnablementSelectors } from './eligibility.ts'
import { agentSettings } from './settings.ts'

test('defaults are those of the original', () => {
  const settings = agentSettings({ NODE_NAME: 'n1' })
  assert.equal(settings.ambientEnabled, false)
  assert.equal(settings.monitoringPort, 15014)
  assert.equal(settings.ztunnelUdsAddress, '/var/run/ztunnel/ztunnel.sock')
  assert.equal(settings.selectors, defaultEnablementSelectors)
  assert.equal(settings.kubeconfigMode, 0o600)
  assert.equal(settings.hostNetns, undefined)
})

test('the node has a network namespace of its own only where that is said', () => {
  const { hostNetns } = agentSettings({ NODE_NAME: 'n1', HOST_PREFIX: '/host', ALLOW_SWITCH_TO_HOST_NS: 'true' })
  assert.equal(hostNetns, '/host/proc/1/ns/net')
})

for (const [name, value, text] of [
  ['AMBIENT_ENABLED', 'yes', 'AMBIENT_ENABLED: "yes": expected true or false'],
  ['MONITORING_PORT', '99999', 'MONITORING_PORT: "99999": expected a port'],
  ['FORCE_IPTABLES_BINARY', 'x', 'invalid FORCE_IPTABLES_BINARY value "x": expected legacy or nft'],
  ['KUBECONFIG_MODE', 'rw', 'KUBECONFIG_MODE: "rw": expected an octal file mode such as 0600'],
  ['AMBIENT_ENABLEMENT_SELECTOR', '{}', /expected a YAML list/],
  [
    'AMBIENT_ENABLEMENT_SELECTOR',
    '[{podSelector: {matchExpressions: [{key: a, operator: Is}]}}]',
    /^.*AMBIENT_ENABLEMENT_SELECTOR\[0\]: podSelector\.matchExpressions\[0\]: expected \{key, operator: In \| NotIn/,
  ],
  [
    'AMBIENT_ENABLEMENT_SELECTOR',
    '[{podSelecter: {}}]',
    /\[0\]: podSelecter: expected podSelector or namespaceSelector/,
  ],
  ['AMBIENT_ENABLEMENT_SELECTOR', '[{podSelector: {matchLabels: {a: 1}}}]', /podSelector\.matchLabels: expected texts/],
  ['NODE_NAME', '', /NODE_NAME is not set/],
] as const) {
  test(`${name}=${value} is refused with what was expected`, () => {
    assert.throws(
      () => agentSettings({ NODE_NAME: 'n1', [name]: value }),
      typeof text === 'string' ? { message: text } : text,
    )
  })
}
