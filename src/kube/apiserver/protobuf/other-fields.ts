// Field numbers of Kubernetes' protobuf form: `<message> <number>:<field>:<type>[:<how>]…`, for admissionregistration, apps, authentication, authorization, autoscaling, autoscaling/v2, batch, certificates, coordination, discovery, events, meta, networking, policy, rbac, scheduling, storage.
// `plain` fields are always sent, so a zero means absent; `inline` ones belong to the object around them in JSON.
export const otherFields = `
admissionregistration.MatchCondition 1:name:string:plain 2:expression:string:plain
admissionregistration.MutatingWebhook 1:name:string:plain 2:clientConfig:admissionregistration.WebhookClientConfig:plain 3:rules:admissionregistration.RuleWithOperations:list 4:failurePolicy:string 9:matchPolicy:string 5:namespaceSelector:meta.LabelSelector 11:objectSelector:meta.LabelSelector 6:sideEffects:string 7:timeoutSeconds:int 8:admissionReviewVersions:string:list 10:reinvocationPolicy:string 12:matchConditions:admissionregistration.MatchCondition:list
admissionregistration.MutatingWebhookConfiguration 1:metadata:meta.ObjectMeta:plain 2:Webhooks:admissionregistration.MutatingWebhook:list
admissionregistration.Rule 1:apiGroups:string:list 2:apiVersions:string:list 3:resources:string:list 4:scope:string
admissionregistration.RuleWithOperations 1:operations:string:list 2:rule:admissionregistration.Rule:inline
admissionregistration.ServiceReference 1:namespace:string:plain 2:name:string:plain 3:path:string 4:port:int
admissionregistration.ValidatingWebhook 1:name:string:plain 2:clientConfig:admissionregistration.WebhookClientConfig:plain 3:rules:admissionregistration.RuleWithOperations:list 4:failurePolicy:string 9:matchPolicy:string 5:namespaceSelector:meta.LabelSelector 10:objectSelector:meta.LabelSelector 6:sideEffects:string 7:timeoutSeconds:int 8:admissionReviewVersions:string:list 11:matchConditions:admissionregistration.MatchCondition:list
admissionregistration.ValidatingWebhookConfiguration 1:metadata:meta.ObjectMeta:plain 2:Webhooks:admissionregistration.ValidatingWebhook:list
admissionregistration.WebhookClientConfig 3:url:string 1:service:admissionregistration.ServiceReference 2:caBundle:bytes
apps.ControllerRevision 1:metadata:meta.ObjectMeta:plain 2:data:json:plain 3:revision:int:plain
apps.DaemonSet 1:metadata:meta.ObjectMeta:plain 2:spec:apps.DaemonSetSpec:plain 3:status:apps.DaemonSetStatus:plain
apps.DaemonSetCondition 1:type:string:plain 2:status:string:plain 3:lastTransitionTime:time:plain 4:reason:string:plain 5:message:string:plain
apps.DaemonSetSpec 1:selector:meta.LabelSelector 2:template:core.PodTemplateSpec:plain 3:updateStrategy:apps.DaemonSetUpdateStrategy:plain 4:minReadySeconds:int:plain 6:revisionHistoryLimit:int
apps.DaemonSetStatus 1:currentNumberScheduled:int:plain 2:numberMisscheduled:int:plain 3:desiredNumberScheduled:int:plain 4:numberReady:int:plain 5:observedGeneration:int:plain 6:updatedNumberScheduled:int:plain 7:numberAvailable:int:plain 8:numberUnavailable:int:plain 9:collisionCount:int 10:conditions:apps.DaemonSetCondition:list
apps.DaemonSetUpdateStrategy 1:type:string:plain 2:rollingUpdate:apps.RollingUpdateDaemonSet
apps.Deployment 1:metadata:meta.ObjectMeta:plain 2:spec:apps.DeploymentSpec:plain 3:status:apps.DeploymentStatus:plain
apps.DeploymentCondition 1:type:string:plain 2:status:string:plain 6:lastUpdateTime:time:plain 7:lastTransitionTime:time:plain 4:reason:string:plain 5:message:string:plain
apps.DeploymentSpec 1:replicas:int 2:selector:meta.LabelSelector 3:template:core.PodTemplateSpec:plain 4:strategy:apps.DeploymentStrategy:plain 5:minReadySeconds:int:plain 6:revisionHistoryLimit:int 7:paused:bool:plain 9:progressDeadlineSeconds:int
apps.DeploymentStatus 1:observedGeneration:int:plain 2:replicas:int:plain 3:updatedReplicas:int:plain 7:readyReplicas:int:plain 4:availableReplicas:int:plain 5:unavailableReplicas:int:plain 6:conditions:apps.DeploymentCondition:list 8:collisionCount:int
apps.DeploymentStrategy 1:type:string:plain 2:rollingUpdate:apps.RollingUpdateDeployment
apps.ReplicaSet 1:metadata:meta.ObjectMeta:plain 2:spec:apps.ReplicaSetSpec:plain 3:status:apps.ReplicaSetStatus:plain
apps.ReplicaSetCondition 1:type:string:plain 2:status:string:plain 3:lastTransitionTime:time:plain 4:reason:string:plain 5:message:string:plain
apps.ReplicaSetSpec 1:replicas:int 4:minReadySeconds:int:plain 2:selector:meta.LabelSelector 3:template:core.PodTemplateSpec:plain
apps.ReplicaSetStatus 1:replicas:int:plain 2:fullyLabeledReplicas:int:plain 4:readyReplicas:int:plain 5:availableReplicas:int:plain 3:observedGeneration:int:plain 6:conditions:apps.ReplicaSetCondition:list
apps.RollingUpdateDaemonSet 1:maxUnavailable:intorstring 2:maxSurge:intorstring
apps.RollingUpdateDeployment 1:maxUnavailable:intorstring 2:maxSurge:intorstring
apps.RollingUpdateStatefulSetStrategy 1:partition:int 2:maxUnavailable:intorstring
apps.StatefulSet 1:metadata:meta.ObjectMeta:plain 2:spec:apps.StatefulSetSpec:plain 3:status:apps.StatefulSetStatus:plain
apps.StatefulSetCondition 1:type:string:plain 2:status:string:plain 3:lastTransitionTime:time:plain 4:reason:string:plain 5:message:string:plain
apps.StatefulSetOrdinals 1:start:int:plain
apps.StatefulSetPersistentVolumeClaimRetentionPolicy 1:whenDeleted:string:plain 2:whenScaled:string:plain
apps.StatefulSetSpec 1:replicas:int 2:selector:meta.LabelSelector 3:template:core.PodTemplateSpec:plain 4:volumeClaimTemplates:core.PersistentVolumeClaim:list 5:serviceName:string:plain 6:podManagementPolicy:string:plain 7:updateStrategy:apps.StatefulSetUpdateStrategy:plain 8:revisionHistoryLimit:int 9:minReadySeconds:int:plain 10:persistentVolumeClaimRetentionPolicy:apps.StatefulSetPersistentVolumeClaimRetentionPolicy 11:ordinals:apps.StatefulSetOrdinals
apps.StatefulSetStatus 1:observedGeneration:int:plain 2:replicas:int:plain 3:readyReplicas:int:plain 4:currentReplicas:int:plain 5:updatedReplicas:int:plain 6:currentRevision:string:plain 7:updateRevision:string:plain 9:collisionCount:int 10:conditions:apps.StatefulSetCondition:list 11:availableReplicas:int:plain
apps.StatefulSetUpdateStrategy 1:type:string:plain 2:rollingUpdate:apps.RollingUpdateStatefulSetStrategy
authentication.BoundObjectReference 1:kind:string:plain 2:apiVersion:string:plain 3:name:string:plain 4:uID:string:plain
authentication.SelfSubjectReview 1:metadata:meta.ObjectMeta:plain 2:status:authentication.SelfSubjectReviewStatus:plain
authentication.SelfSubjectReviewStatus 1:userInfo:authentication.UserInfo:plain
authentication.TokenRequest 1:metadata:meta.ObjectMeta:plain 2:spec:authentication.TokenRequestSpec:plain 3:status:authentication.TokenRequestStatus:plain
authentication.TokenRequestSpec 1:audiences:string:list 4:expirationSeconds:int 3:boundObjectRef:authentication.BoundObjectReference
authentication.TokenRequestStatus 1:token:string:plain 2:expirationTimestamp:time:plain
authentication.TokenReview 1:metadata:meta.ObjectMeta:plain 2:spec:authentication.TokenReviewSpec:plain 3:status:authentication.TokenReviewStatus:plain
authentication.TokenReviewSpec 1:token:string:plain 2:audiences:string:list
authentication.TokenReviewStatus 1:authenticated:bool:plain 2:user:authentication.UserInfo:plain 4:audiences:string:list 3:error:string:plain
authentication.UserInfo 1:username:string:plain 2:uid:string:plain 3:groups:string:list 4:extra:strings:map
authorization.FieldSelectorAttributes 1:rawSelector:string:plain 2:requirements:meta.FieldSelectorRequirement:list
authorization.LabelSelectorAttributes 1:rawSelector:string:plain 2:requirements:meta.LabelSelectorRequirement:list
authorization.LocalSubjectAccessReview 1:metadata:meta.ObjectMeta:plain 2:spec:authorization.SubjectAccessReviewSpec:plain 3:status:authorization.SubjectAccessReviewStatus:plain
authorization.NonResourceAttributes 1:path:string:plain 2:verb:string:plain
authorization.NonResourceRule 1:verbs:string:list 2:nonResourceURLs:string:list
authorization.ResourceAttributes 1:namespace:string:plain 2:verb:string:plain 3:group:string:plain 4:version:string:plain 5:resource:string:plain 6:subresource:string:plain 7:name:string:plain 8:fieldSelector:authorization.FieldSelectorAttributes 9:labelSelector:authorization.LabelSelectorAttributes
authorization.ResourceRule 1:verbs:string:list 2:apiGroups:string:list 3:resources:string:list 4:resourceNames:string:list
authorization.SelfSubjectAccessReview 1:metadata:meta.ObjectMeta:plain 2:spec:authorization.SelfSubjectAccessReviewSpec:plain 3:status:authorization.SubjectAccessReviewStatus:plain
authorization.SelfSubjectAccessReviewSpec 1:resourceAttributes:authorization.ResourceAttributes 2:nonResourceAttributes:authorization.NonResourceAttributes
authorization.SelfSubjectRulesReview 1:metadata:meta.ObjectMeta:plain 2:spec:authorization.SelfSubjectRulesReviewSpec:plain 3:status:authorization.SubjectRulesReviewStatus:plain
authorization.SelfSubjectRulesReviewSpec 1:namespace:string:plain
authorization.SubjectAccessReview 1:metadata:meta.ObjectMeta:plain 2:spec:authorization.SubjectAccessReviewSpec:plain 3:status:authorization.SubjectAccessReviewStatus:plain
authorization.SubjectAccessReviewSpec 1:resourceAttributes:authorization.ResourceAttributes 2:nonResourceAttributes:authorization.NonResourceAttributes 3:user:string:plain 4:groups:string:list 5:extra:strings:map 6:uid:string:plain
authorization.SubjectAccessReviewStatus 1:allowed:bool:plain 4:denied:bool:plain 2:reason:string:plain 3:evaluationError:string:plain
authorization.SubjectRulesReviewStatus 1:resourceRules:authorization.ResourceRule:list 2:nonResourceRules:authorization.NonResourceRule:list 3:incomplete:bool:plain 4:evaluationError:string:plain
autoscaling.Scale 1:metadata:meta.ObjectMeta:plain 2:spec:autoscaling.ScaleSpec:plain 3:status:autoscaling.ScaleStatus:plain
autoscaling.ScaleSpec 1:replicas:int:plain
autoscaling.ScaleStatus 1:replicas:int:plain 2:selector:string:plain
autoscaling/v2.ContainerResourceMetricSource 1:name:string:plain 2:target:autoscaling/v2.MetricTarget:plain 3:container:string:plain
autoscaling/v2.ContainerResourceMetricStatus 1:name:string:plain 2:current:autoscaling/v2.MetricValueStatus:plain 3:container:string:plain
autoscaling/v2.CrossVersionObjectReference 1:kind:string:plain 2:name:string:plain 3:apiVersion:string:plain
autoscaling/v2.ExternalMetricSource 1:metric:autoscaling/v2.MetricIdentifier:plain 2:target:autoscaling/v2.MetricTarget:plain
autoscaling/v2.ExternalMetricStatus 1:metric:autoscaling/v2.MetricIdentifier:plain 2:current:autoscaling/v2.MetricValueStatus:plain
autoscaling/v2.HPAScalingPolicy 1:type:string:plain 2:value:int:plain 3:periodSeconds:int:plain
autoscaling/v2.HPAScalingRules 3:stabilizationWindowSeconds:int 1:selectPolicy:string 2:policies:autoscaling/v2.HPAScalingPolicy:list
autoscaling/v2.HorizontalPodAutoscaler 1:metadata:meta.ObjectMeta:plain 2:spec:autoscaling/v2.HorizontalPodAutoscalerSpec:plain 3:status:autoscaling/v2.HorizontalPodAutoscalerStatus:plain
autoscaling/v2.HorizontalPodAutoscalerBehavior 1:scaleUp:autoscaling/v2.HPAScalingRules 2:scaleDown:autoscaling/v2.HPAScalingRules
autoscaling/v2.HorizontalPodAutoscalerCondition 1:type:string:plain 2:status:string:plain 3:lastTransitionTime:time:plain 4:reason:string:plain 5:message:string:plain
autoscaling/v2.HorizontalPodAutoscalerSpec 1:scaleTargetRef:autoscaling/v2.CrossVersionObjectReference:plain 2:minReplicas:int 3:maxReplicas:int:plain 4:metrics:autoscaling/v2.MetricSpec:list 5:behavior:autoscaling/v2.HorizontalPodAutoscalerBehavior
autoscaling/v2.HorizontalPodAutoscalerStatus 1:observedGeneration:int 2:lastScaleTime:time 3:currentReplicas:int:plain 4:desiredReplicas:int:plain 5:currentMetrics:autoscaling/v2.MetricStatus:list 6:conditions:autoscaling/v2.HorizontalPodAutoscalerCondition:list
autoscaling/v2.MetricIdentifier 1:name:string:plain 2:selector:meta.LabelSelector
autoscaling/v2.MetricSpec 1:type:string:plain 2:object:autoscaling/v2.ObjectMetricSource 3:pods:autoscaling/v2.PodsMetricSource 4:resource:autoscaling/v2.ResourceMetricSource 7:containerResource:autoscaling/v2.ContainerResourceMetricSource 5:external:autoscaling/v2.ExternalMetricSource
autoscaling/v2.MetricStatus 1:type:string:plain 2:object:autoscaling/v2.ObjectMetricStatus 3:pods:autoscaling/v2.PodsMetricStatus 4:resource:autoscaling/v2.ResourceMetricStatus 7:containerResource:autoscaling/v2.ContainerResourceMetricStatus 5:external:autoscaling/v2.ExternalMetricStatus
autoscaling/v2.MetricTarget 1:type:string:plain 2:value:quantity 3:averageValue:quantity 4:averageUtilization:int
autoscaling/v2.MetricValueStatus 1:value:quantity 2:averageValue:quantity 3:averageUtilization:int
autoscaling/v2.ObjectMetricSource 1:describedObject:autoscaling/v2.CrossVersionObjectReference:plain 2:target:autoscaling/v2.MetricTarget:plain 3:metric:autoscaling/v2.MetricIdentifier:plain
autoscaling/v2.ObjectMetricStatus 1:metric:autoscaling/v2.MetricIdentifier:plain 2:current:autoscaling/v2.MetricValueStatus:plain 3:describedObject:autoscaling/v2.CrossVersionObjectReference:plain
autoscaling/v2.PodsMetricSource 1:metric:autoscaling/v2.MetricIdentifier:plain 2:target:autoscaling/v2.MetricTarget:plain
autoscaling/v2.PodsMetricStatus 1:metric:autoscaling/v2.MetricIdentifier:plain 2:current:autoscaling/v2.MetricValueStatus:plain
autoscaling/v2.ResourceMetricSource 1:name:string:plain 2:target:autoscaling/v2.MetricTarget:plain
autoscaling/v2.ResourceMetricStatus 1:name:string:plain 2:current:autoscaling/v2.MetricValueStatus:plain
batch.CronJob 1:metadata:meta.ObjectMeta:plain 2:spec:batch.CronJobSpec:plain 3:status:batch.CronJobStatus:plain
batch.CronJobSpec 1:schedule:string:plain 8:timeZone:string 2:startingDeadlineSeconds:int 3:concurrencyPolicy:string:plain 4:suspend:bool 5:jobTemplate:batch.JobTemplateSpec:plain 6:successfulJobsHistoryLimit:int 7:failedJobsHistoryLimit:int
batch.CronJobStatus 1:active:core.ObjectReference:list 4:lastScheduleTime:time 5:lastSuccessfulTime:time
batch.Job 1:metadata:meta.ObjectMeta:plain 2:spec:batch.JobSpec:plain 3:status:batch.JobStatus:plain
batch.JobCondition 1:type:string:plain 2:status:string:plain 3:lastProbeTime:time:plain 4:lastTransitionTime:time:plain 5:reason:string:plain 6:message:string:plain
batch.JobSpec 1:parallelism:int 2:completions:int 3:activeDeadlineSeconds:int 11:podFailurePolicy:batch.PodFailurePolicy 16:successPolicy:batch.SuccessPolicy 7:backoffLimit:int 12:backoffLimitPerIndex:int 13:maxFailedIndexes:int 4:selector:meta.LabelSelector 5:manualSelector:bool 6:template:core.PodTemplateSpec:plain 8:ttlSecondsAfterFinished:int 9:completionMode:string 10:suspend:bool 14:podReplacementPolicy:string 15:managedBy:string
batch.JobStatus 1:conditions:batch.JobCondition:list 2:startTime:time 3:completionTime:time 4:active:int:plain 5:succeeded:int:plain 6:failed:int:plain 11:terminating:int 7:completedIndexes:string:plain 10:failedIndexes:string 8:uncountedTerminatedPods:batch.UncountedTerminatedPods 9:ready:int
batch.JobTemplateSpec 1:metadata:meta.ObjectMeta:plain 2:spec:batch.JobSpec:plain
batch.PodFailurePolicy 1:rules:batch.PodFailurePolicyRule:list
batch.PodFailurePolicyOnExitCodesRequirement 1:containerName:string 2:operator:string:plain 3:values:int:list
batch.PodFailurePolicyOnPodConditionsPattern 1:type:string:plain 2:status:string:plain
batch.PodFailurePolicyRule 1:action:string:plain 2:onExitCodes:batch.PodFailurePolicyOnExitCodesRequirement 3:onPodConditions:batch.PodFailurePolicyOnPodConditionsPattern:list
batch.SuccessPolicy 1:rules:batch.SuccessPolicyRule:list
batch.SuccessPolicyRule 1:succeededIndexes:string 2:succeededCount:int
batch.UncountedTerminatedPods 1:succeeded:string:list 2:failed:string:list
certificates.ClusterTrustBundle 1:metadata:meta.ObjectMeta:plain 2:spec:certificates.ClusterTrustBundleSpec:plain
certificates.ClusterTrustBundleSpec 1:signerName:string 2:trustBundle:string:plain
certificates.CertificateSigningRequest 1:metadata:meta.ObjectMeta:plain 2:spec:certificates.CertificateSigningRequestSpec:plain 3:status:certificates.CertificateSigningRequestStatus:plain
certificates.CertificateSigningRequestCondition 1:type:string:plain 6:status:string:plain 2:reason:string:plain 3:message:string:plain 4:lastUpdateTime:time:plain 5:lastTransitionTime:time:plain
certificates.CertificateSigningRequestSpec 1:request:bytes 7:signerName:string:plain 8:expirationSeconds:int 5:usages:string:list 2:username:string:plain 3:uid:string:plain 4:groups:string:list 6:extra:strings:map
certificates.CertificateSigningRequestStatus 1:conditions:certificates.CertificateSigningRequestCondition:list 2:certificate:bytes
coordination.Lease 1:metadata:meta.ObjectMeta:plain 2:spec:coordination.LeaseSpec:plain
coordination.LeaseSpec 1:holderIdentity:string 2:leaseDurationSeconds:int 3:acquireTime:microtime 4:renewTime:microtime 5:leaseTransitions:int 6:strategy:string 7:preferredHolder:string
discovery.Endpoint 1:addresses:string:list 2:conditions:discovery.EndpointConditions:plain 3:hostname:string 4:targetRef:core.ObjectReference 5:deprecatedTopology:string:map 6:nodeName:string 7:zone:string 8:hints:discovery.EndpointHints
discovery.EndpointConditions 1:ready:bool 2:serving:bool 3:terminating:bool
discovery.EndpointHints 1:forZones:discovery.ForZone:list
discovery.EndpointPort 1:name:string 2:protocol:string 3:port:int 4:appProtocol:string
discovery.EndpointSlice 1:metadata:meta.ObjectMeta:plain 4:addressType:string:plain 2:endpoints:discovery.Endpoint:list 3:ports:discovery.EndpointPort:list
discovery.ForZone 1:name:string:plain
events.Event 1:metadata:meta.ObjectMeta:plain 2:eventTime:microtime:plain 3:series:events.EventSeries 4:reportingController:string:plain 5:reportingInstance:string:plain 6:action:string:plain 7:reason:string:plain 8:regarding:core.ObjectReference:plain 9:related:core.ObjectReference 10:note:string:plain 11:type:string:plain 12:deprecatedSource:core.EventSource:plain 13:deprecatedFirstTimestamp:time:plain 14:deprecatedLastTimestamp:time:plain 15:deprecatedCount:int:plain
events.EventSeries 1:count:int:plain 2:lastObservedTime:microtime:plain
meta.Condition 1:type:string:plain 2:status:string:plain 3:observedGeneration:int:plain 4:lastTransitionTime:time:plain 5:reason:string:plain 6:message:string:plain
meta.DeleteOptions 1:gracePeriodSeconds:int 2:preconditions:meta.Preconditions 3:orphanDependents:bool 4:propagationPolicy:string 5:dryRun:string:list 6:ignoreStoreReadErrorWithClusterBreakingPotential:bool
meta.FieldSelectorRequirement 1:key:string:plain 2:operator:string:plain 3:values:string:list
meta.LabelSelector 1:matchLabels:string:map 2:matchExpressions:meta.LabelSelectorRequirement:list
meta.LabelSelectorRequirement 1:key:string:plain 2:operator:string:plain 3:values:string:list
meta.ManagedFieldsEntry 1:manager:string:plain 2:operation:string:plain 3:apiVersion:string:plain 4:time:time 6:fieldsType:string:plain 7:fieldsV1:json 8:subresource:string:plain
meta.ObjectMeta 1:name:string:plain 2:generateName:string:plain 3:namespace:string:plain 4:selfLink:string:plain 5:uid:string:plain 6:resourceVersion:string:plain 7:generation:int:plain 8:creationTimestamp:time:plain 9:deletionTimestamp:time 10:deletionGracePeriodSeconds:int 11:labels:string:map 12:annotations:string:map 13:ownerReferences:meta.OwnerReference:list 14:finalizers:string:list 17:managedFields:meta.ManagedFieldsEntry:list
meta.OwnerReference 5:apiVersion:string:plain 1:kind:string:plain 3:name:string:plain 4:uid:string:plain 6:controller:bool 7:blockOwnerDeletion:bool
meta.Preconditions 1:uid:string 2:resourceVersion:string
networking.HTTPIngressPath 1:path:string:plain 3:pathType:string 2:backend:networking.IngressBackend:plain
networking.HTTPIngressRuleValue 1:paths:networking.HTTPIngressPath:list
networking.IPBlock 1:cidr:string:plain 2:except:string:list
networking.Ingress 1:metadata:meta.ObjectMeta:plain 2:spec:networking.IngressSpec:plain 3:status:networking.IngressStatus:plain
networking.IngressBackend 4:service:networking.IngressServiceBackend 3:resource:core.TypedLocalObjectReference
networking.IngressClass 1:metadata:meta.ObjectMeta:plain 2:spec:networking.IngressClassSpec:plain
networking.IngressClassParametersReference 1:apiGroup:string 2:kind:string:plain 3:name:string:plain 4:scope:string 5:namespace:string
networking.IngressClassSpec 1:controller:string:plain 2:parameters:networking.IngressClassParametersReference
networking.IngressLoadBalancerIngress 1:ip:string:plain 2:hostname:string:plain 4:ports:networking.IngressPortStatus:list
networking.IngressLoadBalancerStatus 1:ingress:networking.IngressLoadBalancerIngress:list
networking.IngressPortStatus 1:port:int:plain 2:protocol:string:plain 3:error:string
networking.IngressRule 1:host:string:plain 2:ingressRuleValue:networking.IngressRuleValue:inline
networking.IngressRuleValue 1:http:networking.HTTPIngressRuleValue
networking.IngressServiceBackend 1:name:string:plain 2:port:networking.ServiceBackendPort:plain
networking.IngressSpec 4:ingressClassName:string 1:defaultBackend:networking.IngressBackend 2:tls:networking.IngressTLS:list 3:rules:networking.IngressRule:list
networking.IngressStatus 1:loadBalancer:networking.IngressLoadBalancerStatus:plain
networking.IngressTLS 1:hosts:string:list 2:secretName:string:plain
networking.NetworkPolicy 1:metadata:meta.ObjectMeta:plain 2:spec:networking.NetworkPolicySpec:plain
networking.NetworkPolicyEgressRule 1:ports:networking.NetworkPolicyPort:list 2:to:networking.NetworkPolicyPeer:list
networking.NetworkPolicyIngressRule 1:ports:networking.NetworkPolicyPort:list 2:from:networking.NetworkPolicyPeer:list
networking.NetworkPolicyPeer 1:podSelector:meta.LabelSelector 2:namespaceSelector:meta.LabelSelector 3:ipBlock:networking.IPBlock
networking.NetworkPolicyPort 1:protocol:string 2:port:intorstring 3:endPort:int
networking.NetworkPolicySpec 1:podSelector:meta.LabelSelector:plain 2:ingress:networking.NetworkPolicyIngressRule:list 3:egress:networking.NetworkPolicyEgressRule:list 4:policyTypes:string:list
networking.ServiceBackendPort 1:name:string:plain 2:number:int:plain
policy.Eviction 1:metadata:meta.ObjectMeta:plain 2:deleteOptions:meta.DeleteOptions
policy.PodDisruptionBudget 1:metadata:meta.ObjectMeta:plain 2:spec:policy.PodDisruptionBudgetSpec:plain 3:status:policy.PodDisruptionBudgetStatus:plain
policy.PodDisruptionBudgetSpec 1:minAvailable:intorstring 2:selector:meta.LabelSelector 3:maxUnavailable:intorstring 4:unhealthyPodEvictionPolicy:string
policy.PodDisruptionBudgetStatus 1:observedGeneration:int:plain 2:disruptedPods:time:map 3:disruptionsAllowed:int:plain 4:currentHealthy:int:plain 5:desiredHealthy:int:plain 6:expectedPods:int:plain 7:conditions:meta.Condition:list
rbac.AggregationRule 1:clusterRoleSelectors:meta.LabelSelector:list
rbac.ClusterRole 1:metadata:meta.ObjectMeta:plain 2:rules:rbac.PolicyRule:list 3:aggregationRule:rbac.AggregationRule
rbac.ClusterRoleBinding 1:metadata:meta.ObjectMeta:plain 2:subjects:rbac.Subject:list 3:roleRef:rbac.RoleRef:plain
rbac.PolicyRule 1:verbs:string:list 2:apiGroups:string:list 3:resources:string:list 4:resourceNames:string:list 5:nonResourceURLs:string:list
rbac.Role 1:metadata:meta.ObjectMeta:plain 2:rules:rbac.PolicyRule:list
rbac.RoleBinding 1:metadata:meta.ObjectMeta:plain 2:subjects:rbac.Subject:list 3:roleRef:rbac.RoleRef:plain
rbac.RoleRef 1:apiGroup:string:plain 2:kind:string:plain 3:name:string:plain
rbac.Subject 1:kind:string:plain 2:apiGroup:string:plain 3:name:string:plain 4:namespace:string:plain
scheduling.PriorityClass 1:metadata:meta.ObjectMeta:plain 2:value:int:plain 3:globalDefault:bool:plain 4:description:string:plain 5:preemptionPolicy:string
storage.CSIDriver 1:metadata:meta.ObjectMeta:plain 2:spec:storage.CSIDriverSpec:plain
storage.CSIDriverSpec 1:attachRequired:bool 2:podInfoOnMount:bool 3:volumeLifecycleModes:string:list 4:storageCapacity:bool 5:fsGroupPolicy:string 6:tokenRequests:storage.TokenRequest:list 7:requiresRepublish:bool 8:seLinuxMount:bool
storage.CSINode 1:metadata:meta.ObjectMeta:plain 2:spec:storage.CSINodeSpec:plain
storage.CSINodeDriver 1:name:string:plain 2:nodeID:string:plain 3:topologyKeys:string:list 4:allocatable:storage.VolumeNodeResources
storage.CSINodeSpec 1:drivers:storage.CSINodeDriver:list
storage.StorageClass 1:metadata:meta.ObjectMeta:plain 2:provisioner:string:plain 3:parameters:string:map 4:reclaimPolicy:string 5:mountOptions:string:list 6:allowVolumeExpansion:bool 7:volumeBindingMode:string 8:allowedTopologies:core.TopologySelectorTerm:list
storage.TokenRequest 1:audience:string:plain 2:expirationSeconds:int
storage.VolumeAttachment 1:metadata:meta.ObjectMeta:plain 2:spec:storage.VolumeAttachmentSpec:plain 3:status:storage.VolumeAttachmentStatus:plain
storage.VolumeAttachmentSource 1:persistentVolumeName:string 2:inlineVolumeSpec:core.PersistentVolumeSpec
storage.VolumeAttachmentSpec 1:attacher:string:plain 2:source:storage.VolumeAttachmentSource:plain 3:nodeName:string:plain
storage.VolumeAttachmentStatus 1:attached:bool:plain 2:attachmentMetadata:string:map 3:attachError:storage.VolumeError 4:detachError:storage.VolumeError
storage.VolumeError 1:time:time:plain 2:message:string:plain
storage.VolumeNodeResources 1:count:int
`
