// The kubeconfig of the administrator, who authenticates with a client certificate.
import { stringify } from 'yaml'
import type { Pki } from './pki.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** The text of a kubeconfig; `server` is the URL of the API server. */
export function adminKubeconfig(pki: Pki, server: string, name = 'lateen'): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster: { server, 'certificate-authority-data': base64(pki.authority.certificate) } }],
    users: [
      {
        name: 'admin',
        user: {
          'client-certificate-data': base64(pki.admin.certificate),
          'client-key-data': base64(pki.admin.key),
        },
      },
    ],
    contexts: [{ name, context: { cluster: name, user: 'admin', namespace: 'default' } }],
  })
}
