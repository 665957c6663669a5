import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ServicePort } from '../model.ts'
import { entryTarget, podTarget, portPairs } from './ports.ts'

const port = (number: number, name: string, target: number | string, protocol = 'TCP'): ServicePort => ({
  number,
  name,
  target,
  protocol,
})
const pod = {
  containers: [
    {
      ports: [
        { name: 'web', containerPort: 8080 },
        { name: 'dns', containerPort: 53, protocol: 'UDP' },
      ],
    },
  ],
  initContainers: [
    { ports: [{ name: 'setup', containerPort: 1 }] },
    { restartPolicy: 'Always', ports: [{ name: 'side', containerPort: 9090 }] },
  ],
}

test('a named target port is looked up in containers and sidecars, TCP only', () => {
  const pairs = portPairs(
    [
      port(80, 'a', 'web'),
      port(81, 'b', 'side'),
      port(82, 'c', 'setup'),
      port(83, 'd', 'dns'),
      port(84, 'e', 9),
      port(85, 'f', 0),
    ],
    podTarget(pod, 'Service'),
  )
  assert.deepEqual(
    pairs.map(({ servicePort, targetPort }) => [servicePort, targetPort]),
    [
      [80, 8080],
      [81, 9090],
      [84, 9],
      [85, 85],
    ],
  )
})

test('where TCP and UDP share a number the TCP port decides', () => {
  const ports = [port(53, 'udp', 5353, 'UDP'), port(53, 'tcp', 'web')]
  assert.deepEqual(portPairs(ports, podTarget(pod, 'Service')), [{ servicePort: 53, targetPort: 8080 }])
  assert.deepEqual(portPairs(ports.toReversed(), podTarget(pod, 'Service')), [{ servicePort: 53, targetPort: 8080 }])
})

test('a pod of a ServiceEntry is reached at its port of the same name, else at the declared one', () => {
  const target = podTarget(pod, 'ServiceEntry')
  assert.equal(target(port(80, 'web', 80)), 8080)
  assert.equal(target(port(80, 'other', 81)), 81)
})

test('the port map of a WorkloadEntry comes before the numbers of the service', () => {
  const target = entryTarget({ http: 3080, web: 3000 }, 'Service')
  assert.equal(target(port(80, 'http', 8080)), 3080)
  assert.equal(target(port(80, 'x', 8080)), 8080)
  assert.equal(target(port(80, 'http', 'web')), 3000)
  assert.equal(target(port(80, 'http', 'missing')), undefined)
})
