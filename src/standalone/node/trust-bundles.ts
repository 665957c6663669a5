// The file of a projected ClusterTrustBundle: the roots of one bundle, or of all bundles of a signer that a selector picks.
import type { ClusterTrustBundleProjection } from 'kubernetes-types/core/v1.js'
import { matchesLabelSelector } from '../../api/index.ts'
import type { ClusterTrustBundle } from './types.ts'

/** The certificates, each once; undefined when no bundle is meant. Without a selector no bundle of a signer is meant, as in Kubernetes. */
export function projectedRoots(
  projection: ClusterTrustBundleProjection,
  bundles: readonly ClusterTrustBundle[],
): string | undefined {
  const { name, signerName, labelSelector } = projection
  const meant = bundles.filter(({ metadata, spec }) =>
    name === undefined
      ? signerName !== undefined &&
        spec?.signerName === signerName &&
        labelSelector !== undefined &&
        matchesLabelSelector(labelSelector, metadata.labels)
      : metadata.name === name,
  )
  if (meant.length === 0) return undefined
  const certificates = meant.flatMap(({ spec }) => spec?.trustBundle.match(certificate) ?? [])
  return [...new Set(certificates)].map((pem) => `${pem}\n`).join('')
}

const certificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g
