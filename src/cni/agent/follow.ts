// Leads what the API server tells of pods and namespaces to the controller.
import type { Namespace, Pod } from 'kubernetes-types/core/v1.js'
import type { KubeObject } from '../../api/index.ts'
import type { Informer } from '../../kube/index.ts'
import type { EnrollmentController } from './controller.ts'

/** `count` is told of each event: `add`, `update` or `delete`. */
export function followPods(
  informer: Informer<KubeObject>,
  controller: EnrollmentController,
  count: (type: string) => void,
): void {
  informer.subscribe((changes) => {
    for (const change of changes) {
      switch (change.kind) {
        case 'added':
          controller.podAdded(change.object as Pod)
          count('add')
          break
        case 'updated':
          // A pod of the same name may have taken the place of another between two events.
          if (change.old.metadata.uid !== change.object.metadata.uid) controller.podDeleted(change.old as Pod)
          controller.podUpdated(change.old as Pod, change.object as Pod)
          count('update')
          break
        case 'deleted':
          controller.podDeleted(change.object as Pod)
          count('delete')
      }
    }
  })
}

export function followNamespaces(informer: Informer<KubeObject>, controller: EnrollmentController): void {
  informer.subscribe((changes) => {
    for (const change of changes) {
      if (change.kind === 'deleted') controller.namespaceDeleted(change.object.metadata.name)
      else controller.namespaceChanged(change.object as Namespace)
    }
  })
}
