// The metrics of workloads that register themselves.
import type { MetricsRegistry } from '../../observability/index.ts'

export interface RegistrationMetrics {
  registered(): void
  updated(): void
  unregistered(): void
  deleted(): void
  failed(): void
}

export function createRegistrationMetrics(registry: MetricsRegistry): RegistrationMetrics {
  const counter = (name: string, help: string) => {
    const counted = registry.counter({ name, help })
    return () => counted.with({}).inc()
  }
  return {
    registered: counter('auto_registration_success_total', 'Total number of successful auto registrations.'),
    updated: counter('auto_registration_updates_total', 'Total number of auto registration updates.'),
    unregistered: counter('auto_registration_unregister_total', 'Total number of unregistrations.'),
    deleted: counter('auto_registration_deletes_total', 'Total number of auto registrations cleaned up.'),
    failed: counter('auto_registration_errors_total', 'Total number of auto registration errors.'),
  }
}
