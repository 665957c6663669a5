import assert from 'node:assert/strict'
import { test } from 'node:test'
import { podUidOfCgroup } from './namespaces.ts'

const uid = '0a1b2c3d-1111-2222-3333-444455556666'

for (const [name, cgroup, expected] of [
  ['cgroupfs', `0::/kubepods/besteffort/pod${uid}/abc`, uid],
  [
    'systemd',
    `0::/kubepods.slice/kubepods-burstable-pod${uid.replaceAll('-', '_')}.slice/cri-containerd-abc.scope`,
    uid,
  ],
  [
    'version 1 with one pod in every hierarchy',
    `2:cpu:/kubepods/pod${uid}/x\n1:name=systemd:/kubepods/pod${uid}/x`,
    uid,
  ],
  ['two pods', `0::/kubepods/pod${uid}/pod${uid.replace('0a', 'ff')}`, undefined],
  ['no pod', '0::/user.slice', undefined],
] as const) {
  test(`the pod of a process: ${name}`, () => assert.equal(podUidOfCgroup(cgroup), expected))
}
