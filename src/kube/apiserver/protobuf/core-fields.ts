// Field numbers of Kubernetes' protobuf form: `<message> <number>:<field>:<type>[:<how>]…`, for core.
// `plain` fields are always sent, so a zero means absent; `inline` ones belong to the object around them in JSON.
export const coreFields = `
core.AWSElasticBlockStoreVolumeSource 1:volumeID:string:plain 2:fsType:string:plain 3:partition:int:plain 4:readOnly:bool:plain
core.Affinity 1:nodeAffinity:core.NodeAffinity 2:podAffinity:core.PodAffinity 3:podAntiAffinity:core.PodAntiAffinity
core.AppArmorProfile 1:type:string:plain 2:localhostProfile:string
core.AttachedVolume 1:name:string:plain 2:devicePath:string:plain
core.AzureDiskVolumeSource 1:diskName:string:plain 2:diskURI:string:plain 3:cachingMode:string 4:fsType:string 5:readOnly:bool 6:kind:string
core.AzureFilePersistentVolumeSource 1:secretName:string:plain 2:shareName:string:plain 3:readOnly:bool:plain 4:secretNamespace:string
core.AzureFileVolumeSource 1:secretName:string:plain 2:shareName:string:plain 3:readOnly:bool:plain
core.Binding 1:metadata:meta.ObjectMeta:plain 2:target:core.ObjectReference:plain
core.CSIPersistentVolumeSource 1:driver:string:plain 2:volumeHandle:string:plain 3:readOnly:bool:plain 4:fsType:string:plain 5:volumeAttributes:string:map 6:controllerPublishSecretRef:core.SecretReference 7:nodeStageSecretRef:core.SecretReference 8:nodePublishSecretRef:core.SecretReference 9:controllerExpandSecretRef:core.SecretReference 10:nodeExpandSecretRef:core.SecretReference
core.CSIVolumeSource 1:driver:string:plain 2:readOnly:bool 3:fsType:string 4:volumeAttributes:string:map 5:nodePublishSecretRef:core.LocalObjectReference
core.Capabilities 1:add:string:list 2:drop:string:list
core.CephFSPersistentVolumeSource 1:monitors:string:list 2:path:string:plain 3:user:string:plain 4:secretFile:string:plain 5:secretRef:core.SecretReference 6:readOnly:bool:plain
core.CephFSVolumeSource 1:monitors:string:list 2:path:string:plain 3:user:string:plain 4:secretFile:string:plain 5:secretRef:core.LocalObjectReference 6:readOnly:bool:plain
core.CinderPersistentVolumeSource 1:volumeID:string:plain 2:fsType:string:plain 3:readOnly:bool:plain 4:secretRef:core.SecretReference
core.CinderVolumeSource 1:volumeID:string:plain 2:fsType:string:plain 3:readOnly:bool:plain 4:secretRef:core.LocalObjectReference
core.ClientIPConfig 1:timeoutSeconds:int
core.ClusterTrustBundleProjection 1:name:string 2:signerName:string 3:labelSelector:meta.LabelSelector 5:optional:bool 4:path:string:plain
core.ConfigMap 1:metadata:meta.ObjectMeta:plain 4:immutable:bool 2:data:string:map 3:binaryData:bytes:map
core.ConfigMapEnvSource 1:localObjectReference:core.LocalObjectReference:inline 2:optional:bool
core.ConfigMapKeySelector 1:localObjectReference:core.LocalObjectReference:inline 2:key:string:plain 3:optional:bool
core.ConfigMapNodeConfigSource 1:namespace:string:plain 2:name:string:plain 3:uid:string:plain 4:resourceVersion:string:plain 5:kubeletConfigKey:string:plain
core.ConfigMapProjection 1:localObjectReference:core.LocalObjectReference:inline 2:items:core.KeyToPath:list 4:optional:bool
core.ConfigMapVolumeSource 1:localObjectReference:core.LocalObjectReference:inline 2:items:core.KeyToPath:list 3:defaultMode:int 4:optional:bool
core.Container 1:name:string:plain 2:image:string:plain 3:command:string:list 4:args:string:list 5:workingDir:string:plain 6:ports:core.ContainerPort:list 19:envFrom:core.EnvFromSource:list 7:env:core.EnvVar:list 8:resources:core.ResourceRequirements:plain 23:resizePolicy:core.ContainerResizePolicy:list 24:restartPolicy:string 9:volumeMounts:core.VolumeMount:list 21:volumeDevices:core.VolumeDevice:list 10:livenessProbe:core.Probe 11:readinessProbe:core.Probe 22:startupProbe:core.Probe 12:lifecycle:core.Lifecycle 13:terminationMessagePath:string:plain 20:terminationMessagePolicy:string:plain 14:imagePullPolicy:string:plain 15:securityContext:core.SecurityContext 16:stdin:bool:plain 17:stdinOnce:bool:plain 18:tty:bool:plain
core.ContainerImage 1:names:string:list 2:sizeBytes:int:plain
core.ContainerPort 1:name:string:plain 2:hostPort:int:plain 3:containerPort:int:plain 4:protocol:string:plain 5:hostIP:string:plain
core.ContainerResizePolicy 1:resourceName:string:plain 2:restartPolicy:string:plain
core.ContainerState 1:waiting:core.ContainerStateWaiting 2:running:core.ContainerStateRunning 3:terminated:core.ContainerStateTerminated
core.ContainerStateRunning 1:startedAt:time:plain
core.ContainerStateTerminated 1:exitCode:int:plain 2:signal:int:plain 3:reason:string:plain 4:message:string:plain 5:startedAt:time:plain 6:finishedAt:time:plain 7:containerID:string:plain
core.ContainerStateWaiting 1:reason:string:plain 2:message:string:plain
core.ContainerStatus 1:name:string:plain 2:state:core.ContainerState:plain 3:lastState:core.ContainerState:plain 4:ready:bool:plain 5:restartCount:int:plain 6:image:string:plain 7:imageID:string:plain 8:containerID:string:plain 9:started:bool 10:allocatedResources:quantity:map 11:resources:core.ResourceRequirements 12:volumeMounts:core.VolumeMountStatus:list 13:user:core.ContainerUser 14:allocatedResourcesStatus:core.ResourceStatus:list
core.ContainerUser 1:linux:core.LinuxContainerUser
core.DaemonEndpoint 1:Port:int:plain
core.DownwardAPIProjection 1:items:core.DownwardAPIVolumeFile:list
core.DownwardAPIVolumeFile 1:path:string:plain 2:fieldRef:core.ObjectFieldSelector 3:resourceFieldRef:core.ResourceFieldSelector 4:mode:int
core.DownwardAPIVolumeSource 1:items:core.DownwardAPIVolumeFile:list 2:defaultMode:int
core.EmptyDirVolumeSource 1:medium:string:plain 2:sizeLimit:quantity
core.EndpointAddress 1:ip:string:plain 3:hostname:string:plain 4:nodeName:string 2:targetRef:core.ObjectReference
core.EndpointPort 1:name:string:plain 2:port:int:plain 3:protocol:string:plain 4:appProtocol:string
core.EndpointSubset 1:addresses:core.EndpointAddress:list 2:notReadyAddresses:core.EndpointAddress:list 3:ports:core.EndpointPort:list
core.Endpoints 1:metadata:meta.ObjectMeta:plain 2:subsets:core.EndpointSubset:list
core.EnvFromSource 1:prefix:string:plain 2:configMapRef:core.ConfigMapEnvSource 3:secretRef:core.SecretEnvSource
core.EnvVar 1:name:string:plain 2:value:string:plain 3:valueFrom:core.EnvVarSource
core.EnvVarSource 1:fieldRef:core.ObjectFieldSelector 2:resourceFieldRef:core.ResourceFieldSelector 3:configMapKeyRef:core.ConfigMapKeySelector 4:secretKeyRef:core.SecretKeySelector
core.EphemeralContainer 1:ephemeralContainerCommon:core.EphemeralContainerCommon:inline 2:targetContainerName:string:plain
core.EphemeralContainerCommon 1:name:string:plain 2:image:string:plain 3:command:string:list 4:args:string:list 5:workingDir:string:plain 6:ports:core.ContainerPort:list 19:envFrom:core.EnvFromSource:list 7:env:core.EnvVar:list 8:resources:core.ResourceRequirements:plain 23:resizePolicy:core.ContainerResizePolicy:list 24:restartPolicy:string 9:volumeMounts:core.VolumeMount:list 21:volumeDevices:core.VolumeDevice:list 10:livenessProbe:core.Probe 11:readinessProbe:core.Probe 22:startupProbe:core.Probe 12:lifecycle:core.Lifecycle 13:terminationMessagePath:string:plain 20:terminationMessagePolicy:string:plain 14:imagePullPolicy:string:plain 15:securityContext:core.SecurityContext 16:stdin:bool:plain 17:stdinOnce:bool:plain 18:tty:bool:plain
core.EphemeralVolumeSource 1:volumeClaimTemplate:core.PersistentVolumeClaimTemplate
core.Event 1:metadata:meta.ObjectMeta:plain 2:involvedObject:core.ObjectReference:plain 3:reason:string:plain 4:message:string:plain 5:source:core.EventSource:plain 6:firstTimestamp:time:plain 7:lastTimestamp:time:plain 8:count:int:plain 9:type:string:plain 10:eventTime:microtime:plain 11:series:core.EventSeries 12:action:string:plain 13:related:core.ObjectReference 14:reportingComponent:string:plain 15:reportingInstance:string:plain
core.EventSeries 1:count:int:plain 2:lastObservedTime:microtime:plain
core.EventSource 1:component:string:plain 2:host:string:plain
core.ExecAction 1:command:string:list
core.FCVolumeSource 1:targetWWNs:string:list 2:lun:int 3:fsType:string:plain 4:readOnly:bool:plain 5:wwids:string:list
core.FlexPersistentVolumeSource 1:driver:string:plain 2:fsType:string:plain 3:secretRef:core.SecretReference 4:readOnly:bool:plain 5:options:string:map
core.FlexVolumeSource 1:driver:string:plain 2:fsType:string:plain 3:secretRef:core.LocalObjectReference 4:readOnly:bool:plain 5:options:string:map
core.FlockerVolumeSource 1:datasetName:string:plain 2:datasetUUID:string:plain
core.GCEPersistentDiskVolumeSource 1:pdName:string:plain 2:fsType:string:plain 3:partition:int:plain 4:readOnly:bool:plain
core.GRPCAction 1:port:int:plain 2:service:string
core.GitRepoVolumeSource 1:repository:string:plain 2:revision:string:plain 3:directory:string:plain
core.GlusterfsPersistentVolumeSource 1:endpoints:string:plain 2:path:string:plain 3:readOnly:bool:plain 4:endpointsNamespace:string
core.GlusterfsVolumeSource 1:endpoints:string:plain 2:path:string:plain 3:readOnly:bool:plain
core.HTTPGetAction 1:path:string:plain 2:port:intorstring:plain 3:host:string:plain 4:scheme:string:plain 5:httpHeaders:core.HTTPHeader:list
core.HTTPHeader 1:name:string:plain 2:value:string:plain
core.HostAlias 1:ip:string:plain 2:hostnames:string:list
core.HostIP 1:ip:string:plain
core.HostPathVolumeSource 1:path:string:plain 2:type:string
core.ISCSIPersistentVolumeSource 1:targetPortal:string:plain 2:iqn:string:plain 3:lun:int:plain 4:iscsiInterface:string:plain 5:fsType:string:plain 6:readOnly:bool:plain 7:portals:string:list 8:chapAuthDiscovery:bool:plain 11:chapAuthSession:bool:plain 10:secretRef:core.SecretReference 12:initiatorName:string
core.ISCSIVolumeSource 1:targetPortal:string:plain 2:iqn:string:plain 3:lun:int:plain 4:iscsiInterface:string:plain 5:fsType:string:plain 6:readOnly:bool:plain 7:portals:string:list 8:chapAuthDiscovery:bool:plain 11:chapAuthSession:bool:plain 10:secretRef:core.LocalObjectReference 12:initiatorName:string
core.ImageVolumeSource 1:reference:string:plain 2:pullPolicy:string:plain
core.KeyToPath 1:key:string:plain 2:path:string:plain 3:mode:int
core.Lifecycle 1:postStart:core.LifecycleHandler 2:preStop:core.LifecycleHandler
core.LifecycleHandler 1:exec:core.ExecAction 2:httpGet:core.HTTPGetAction 3:tcpSocket:core.TCPSocketAction 4:sleep:core.SleepAction
core.LimitRange 1:metadata:meta.ObjectMeta:plain 2:spec:core.LimitRangeSpec:plain
core.LimitRangeItem 1:type:string:plain 2:max:quantity:map 3:min:quantity:map 4:default:quantity:map 5:defaultRequest:quantity:map 6:maxLimitRequestRatio:quantity:map
core.LimitRangeSpec 1:limits:core.LimitRangeItem:list
core.LinuxContainerUser 1:uid:int:plain 2:gid:int:plain 3:supplementalGroups:int:list
core.LoadBalancerIngress 1:ip:string:plain 2:hostname:string:plain 3:ipMode:string 4:ports:core.PortStatus:list
core.LoadBalancerStatus 1:ingress:core.LoadBalancerIngress:list
core.LocalObjectReference 1:name:string:plain
core.LocalVolumeSource 1:path:string:plain 2:fsType:string
core.ModifyVolumeStatus 1:targetVolumeAttributesClassName:string:plain 2:status:string:plain
core.NFSVolumeSource 1:server:string:plain 2:path:string:plain 3:readOnly:bool:plain
core.Namespace 1:metadata:meta.ObjectMeta:plain 2:spec:core.NamespaceSpec:plain 3:status:core.NamespaceStatus:plain
core.NamespaceCondition 1:type:string:plain 2:status:string:plain 4:lastTransitionTime:time:plain 5:reason:string:plain 6:message:string:plain
core.NamespaceSpec 1:finalizers:string:list
core.NamespaceStatus 1:phase:string:plain 2:conditions:core.NamespaceCondition:list
core.Node 1:metadata:meta.ObjectMeta:plain 2:spec:core.NodeSpec:plain 3:status:core.NodeStatus:plain
core.NodeAddress 1:type:string:plain 2:address:string:plain
core.NodeAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:core.NodeSelector 2:preferredDuringSchedulingIgnoredDuringExecution:core.PreferredSchedulingTerm:list
core.NodeCondition 1:type:string:plain 2:status:string:plain 3:lastHeartbeatTime:time:plain 4:lastTransitionTime:time:plain 5:reason:string:plain 6:message:string:plain
core.NodeConfigSource 2:configMap:core.ConfigMapNodeConfigSource
core.NodeConfigStatus 1:assigned:core.NodeConfigSource 2:active:core.NodeConfigSource 3:lastKnownGood:core.NodeConfigSource 4:error:string:plain
core.NodeDaemonEndpoints 1:kubeletEndpoint:core.DaemonEndpoint:plain
core.NodeFeatures 1:supplementalGroupsPolicy:bool
core.NodeRuntimeHandler 1:name:string:plain 2:features:core.NodeRuntimeHandlerFeatures
core.NodeRuntimeHandlerFeatures 1:recursiveReadOnlyMounts:bool 2:userNamespaces:bool
core.NodeSelector 1:nodeSelectorTerms:core.NodeSelectorTerm:list
core.NodeSelectorRequirement 1:key:string:plain 2:operator:string:plain 3:values:string:list
core.NodeSelectorTerm 1:matchExpressions:core.NodeSelectorRequirement:list 2:matchFields:core.NodeSelectorRequirement:list
core.NodeSpec 1:podCIDR:string:plain 7:podCIDRs:string:list 3:providerID:string:plain 4:unschedulable:bool:plain 5:taints:core.Taint:list 6:configSource:core.NodeConfigSource 2:externalID:string:plain
core.NodeStatus 1:capacity:quantity:map 2:allocatable:quantity:map 3:phase:string:plain 4:conditions:core.NodeCondition:list 5:addresses:core.NodeAddress:list 6:daemonEndpoints:core.NodeDaemonEndpoints:plain 7:nodeInfo:core.NodeSystemInfo:plain 8:images:core.ContainerImage:list 9:volumesInUse:string:list 10:volumesAttached:core.AttachedVolume:list 11:config:core.NodeConfigStatus 12:runtimeHandlers:core.NodeRuntimeHandler:list 13:features:core.NodeFeatures
core.NodeSystemInfo 1:machineID:string:plain 2:systemUUID:string:plain 3:bootID:string:plain 4:kernelVersion:string:plain 5:osImage:string:plain 6:containerRuntimeVersion:string:plain 7:kubeletVersion:string:plain 8:kubeProxyVersion:string:plain 9:operatingSystem:string:plain 10:architecture:string:plain
core.ObjectFieldSelector 1:apiVersion:string:plain 2:fieldPath:string:plain
core.ObjectReference 1:kind:string:plain 2:namespace:string:plain 3:name:string:plain 4:uid:string:plain 5:apiVersion:string:plain 6:resourceVersion:string:plain 7:fieldPath:string:plain
core.PersistentVolume 1:metadata:meta.ObjectMeta:plain 2:spec:core.PersistentVolumeSpec:plain 3:status:core.PersistentVolumeStatus:plain
core.PersistentVolumeClaim 1:metadata:meta.ObjectMeta:plain 2:spec:core.PersistentVolumeClaimSpec:plain 3:status:core.PersistentVolumeClaimStatus:plain
core.PersistentVolumeClaimCondition 1:type:string:plain 2:status:string:plain 3:lastProbeTime:time:plain 4:lastTransitionTime:time:plain 5:reason:string:plain 6:message:string:plain
core.PersistentVolumeClaimSpec 1:accessModes:string:list 4:selector:meta.LabelSelector 2:resources:core.VolumeResourceRequirements:plain 3:volumeName:string:plain 5:storageClassName:string 6:volumeMode:string 7:dataSource:core.TypedLocalObjectReference 8:dataSourceRef:core.TypedObjectReference 9:volumeAttributesClassName:string
core.PersistentVolumeClaimStatus 1:phase:string:plain 2:accessModes:string:list 3:capacity:quantity:map 4:conditions:core.PersistentVolumeClaimCondition:list 5:allocatedResources:quantity:map 7:allocatedResourceStatuses:string:map 8:currentVolumeAttributesClassName:string 9:modifyVolumeStatus:core.ModifyVolumeStatus
core.PersistentVolumeClaimTemplate 1:metadata:meta.ObjectMeta:plain 2:spec:core.PersistentVolumeClaimSpec:plain
core.PersistentVolumeClaimVolumeSource 1:claimName:string:plain 2:readOnly:bool:plain
core.PersistentVolumeSource 1:gcePersistentDisk:core.GCEPersistentDiskVolumeSource 2:awsElasticBlockStore:core.AWSElasticBlockStoreVolumeSource 3:hostPath:core.HostPathVolumeSource 4:glusterfs:core.GlusterfsPersistentVolumeSource 5:nfs:core.NFSVolumeSource 6:rbd:core.RBDPersistentVolumeSource 7:iscsi:core.ISCSIPersistentVolumeSource 8:cinder:core.CinderPersistentVolumeSource 9:cephfs:core.CephFSPersistentVolumeSource 10:fc:core.FCVolumeSource 11:flocker:core.FlockerVolumeSource 12:flexVolume:core.FlexPersistentVolumeSource 13:azureFile:core.AzureFilePersistentVolumeSource 14:vsphereVolume:core.VsphereVirtualDiskVolumeSource 15:quobyte:core.QuobyteVolumeSource 16:azureDisk:core.AzureDiskVolumeSource 17:photonPersistentDisk:core.PhotonPersistentDiskVolumeSource 18:portworxVolume:core.PortworxVolumeSource 19:scaleIO:core.ScaleIOPersistentVolumeSource 20:local:core.LocalVolumeSource 21:storageos:core.StorageOSPersistentVolumeSource 22:csi:core.CSIPersistentVolumeSource
core.PersistentVolumeSpec 1:capacity:quantity:map 2:persistentVolumeSource:core.PersistentVolumeSource:inline 3:accessModes:string:list 4:claimRef:core.ObjectReference 5:persistentVolumeReclaimPolicy:string:plain 6:storageClassName:string:plain 7:mountOptions:string:list 8:volumeMode:string 9:nodeAffinity:core.VolumeNodeAffinity 10:volumeAttributesClassName:string
core.PersistentVolumeStatus 1:phase:string:plain 2:message:string:plain 3:reason:string:plain 4:lastPhaseTransitionTime:time
core.PhotonPersistentDiskVolumeSource 1:pdID:string:plain 2:fsType:string:plain
core.Pod 1:metadata:meta.ObjectMeta:plain 2:spec:core.PodSpec:plain 3:status:core.PodStatus:plain
core.PodAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:core.PodAffinityTerm:list 2:preferredDuringSchedulingIgnoredDuringExecution:core.WeightedPodAffinityTerm:list
core.PodAffinityTerm 1:labelSelector:meta.LabelSelector 2:namespaces:string:list 3:topologyKey:string:plain 4:namespaceSelector:meta.LabelSelector 5:matchLabelKeys:string:list 6:mismatchLabelKeys:string:list
core.PodAntiAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:core.PodAffinityTerm:list 2:preferredDuringSchedulingIgnoredDuringExecution:core.WeightedPodAffinityTerm:list
core.PodCondition 1:type:string:plain 2:status:string:plain 3:lastProbeTime:time:plain 4:lastTransitionTime:time:plain 5:reason:string:plain 6:message:string:plain
core.PodDNSConfig 1:nameservers:string:list 2:searches:string:list 3:options:core.PodDNSConfigOption:list
core.PodDNSConfigOption 1:name:string:plain 2:value:string
core.PodIP 1:ip:string:plain
core.PodOS 1:name:string:plain
core.PodReadinessGate 1:conditionType:string:plain
core.PodResourceClaim 1:name:string:plain 3:resourceClaimName:string 4:resourceClaimTemplateName:string
core.PodResourceClaimStatus 1:name:string:plain 2:resourceClaimName:string
core.PodSchedulingGate 1:name:string:plain
core.PodSecurityContext 1:seLinuxOptions:core.SELinuxOptions 8:windowsOptions:core.WindowsSecurityContextOptions 2:runAsUser:int 6:runAsGroup:int 3:runAsNonRoot:bool 4:supplementalGroups:int:list 12:supplementalGroupsPolicy:string 5:fsGroup:int 7:sysctls:core.Sysctl:list 9:fsGroupChangePolicy:string 10:seccompProfile:core.SeccompProfile 11:appArmorProfile:core.AppArmorProfile 13:seLinuxChangePolicy:string
core.PodSpec 1:volumes:core.Volume:list 20:initContainers:core.Container:list 2:containers:core.Container:list 34:ephemeralContainers:core.EphemeralContainer:list 3:restartPolicy:string:plain 4:terminationGracePeriodSeconds:int 5:activeDeadlineSeconds:int 6:dnsPolicy:string:plain 7:nodeSelector:string:map 8:serviceAccountName:string:plain 9:serviceAccount:string:plain 21:automountServiceAccountToken:bool 10:nodeName:string:plain 11:hostNetwork:bool:plain 12:hostPID:bool:plain 13:hostIPC:bool:plain 27:shareProcessNamespace:bool 14:securityContext:core.PodSecurityContext 15:imagePullSecrets:core.LocalObjectReference:list 16:hostname:string:plain 17:subdomain:string:plain 18:affinity:core.Affinity 19:schedulerName:string:plain 22:tolerations:core.Toleration:list 23:hostAliases:core.HostAlias:list 24:priorityClassName:string:plain 25:priority:int 26:dnsConfig:core.PodDNSConfig 28:readinessGates:core.PodReadinessGate:list 29:runtimeClassName:string 30:enableServiceLinks:bool 31:preemptionPolicy:string 32:overhead:quantity:map 33:topologySpreadConstraints:core.TopologySpreadConstraint:list 35:setHostnameAsFQDN:bool 36:os:core.PodOS 37:hostUsers:bool 38:schedulingGates:core.PodSchedulingGate:list 39:resourceClaims:core.PodResourceClaim:list 40:resources:core.ResourceRequirements
core.PodStatus 1:phase:string:plain 2:conditions:core.PodCondition:list 3:message:string:plain 4:reason:string:plain 11:nominatedNodeName:string:plain 5:hostIP:string:plain 16:hostIPs:core.HostIP:list 6:podIP:string:plain 12:podIPs:core.PodIP:list 7:startTime:time 10:initContainerStatuses:core.ContainerStatus:list 8:containerStatuses:core.ContainerStatus:list 9:qosClass:string:plain 13:ephemeralContainerStatuses:core.ContainerStatus:list 14:resize:string:plain 15:resourceClaimStatuses:core.PodResourceClaimStatus:list
core.PodTemplate 1:metadata:meta.ObjectMeta:plain 2:template:core.PodTemplateSpec:plain
core.PodTemplateSpec 1:metadata:meta.ObjectMeta:plain 2:spec:core.PodSpec:plain
core.PortStatus 1:port:int:plain 2:protocol:string:plain 3:error:string
core.PortworxVolumeSource 1:volumeID:string:plain 2:fsType:string:plain 3:readOnly:bool:plain
core.PreferredSchedulingTerm 1:weight:int:plain 2:preference:core.NodeSelectorTerm:plain
core.Probe 1:handler:core.ProbeHandler:inline 2:initialDelaySeconds:int:plain 3:timeoutSeconds:int:plain 4:periodSeconds:int:plain 5:successThreshold:int:plain 6:failureThreshold:int:plain 7:terminationGracePeriodSeconds:int
core.ProbeHandler 1:exec:core.ExecAction 2:httpGet:core.HTTPGetAction 3:tcpSocket:core.TCPSocketAction 4:grpc:core.GRPCAction
core.ProjectedVolumeSource 1:sources:core.VolumeProjection:list 2:defaultMode:int
core.QuobyteVolumeSource 1:registry:string:plain 2:volume:string:plain 3:readOnly:bool:plain 4:user:string:plain 5:group:string:plain 6:tenant:string:plain
core.RBDPersistentVolumeSource 1:monitors:string:list 2:image:string:plain 3:fsType:string:plain 4:pool:string:plain 5:user:string:plain 6:keyring:string:plain 7:secretRef:core.SecretReference 8:readOnly:bool:plain
core.RBDVolumeSource 1:monitors:string:list 2:image:string:plain 3:fsType:string:plain 4:pool:string:plain 5:user:string:plain 6:keyring:string:plain 7:secretRef:core.LocalObjectReference 8:readOnly:bool:plain
core.ReplicationController 1:metadata:meta.ObjectMeta:plain 2:spec:core.ReplicationControllerSpec:plain 3:status:core.ReplicationControllerStatus:plain
core.ReplicationControllerCondition 1:type:string:plain 2:status:string:plain 3:lastTransitionTime:time:plain 4:reason:string:plain 5:message:string:plain
core.ReplicationControllerSpec 1:replicas:int 4:minReadySeconds:int:plain 2:selector:string:map 3:template:core.PodTemplateSpec
core.ReplicationControllerStatus 1:replicas:int:plain 2:fullyLabeledReplicas:int:plain 4:readyReplicas:int:plain 5:availableReplicas:int:plain 3:observedGeneration:int:plain 6:conditions:core.ReplicationControllerCondition:list
core.ResourceClaim 1:name:string:plain 2:request:string:plain
core.ResourceFieldSelector 1:containerName:string:plain 2:resource:string:plain 3:divisor:quantity:plain
core.ResourceHealth 1:resourceID:string:plain 2:health:string:plain
core.ResourceQuota 1:metadata:meta.ObjectMeta:plain 2:spec:core.ResourceQuotaSpec:plain 3:status:core.ResourceQuotaStatus:plain
core.ResourceQuotaSpec 1:hard:quantity:map 2:scopes:string:list 3:scopeSelector:core.ScopeSelector
core.ResourceQuotaStatus 1:hard:quantity:map 2:used:quantity:map
core.ResourceRequirements 1:limits:quantity:map 2:requests:quantity:map 3:claims:core.ResourceClaim:list
core.ResourceStatus 1:name:string:plain 2:resources:core.ResourceHealth:list
core.SELinuxOptions 1:user:string:plain 2:role:string:plain 3:type:string:plain 4:level:string:plain
core.ScaleIOPersistentVolumeSource 1:gateway:string:plain 2:system:string:plain 3:secretRef:core.SecretReference 4:sslEnabled:bool:plain 5:protectionDomain:string:plain 6:storagePool:string:plain 7:storageMode:string:plain 8:volumeName:string:plain 9:fsType:string:plain 10:readOnly:bool:plain
core.ScaleIOVolumeSource 1:gateway:string:plain 2:system:string:plain 3:secretRef:core.LocalObjectReference 4:sslEnabled:bool:plain 5:protectionDomain:string:plain 6:storagePool:string:plain 7:storageMode:string:plain 8:volumeName:string:plain 9:fsType:string:plain 10:readOnly:bool:plain
core.ScopeSelector 1:matchExpressions:core.ScopedResourceSelectorRequirement:list
core.ScopedResourceSelectorRequirement 1:scopeName:string:plain 2:operator:string:plain 3:values:string:list
core.SeccompProfile 1:type:string:plain 2:localhostProfile:string
core.Secret 1:metadata:meta.ObjectMeta:plain 5:immutable:bool 2:data:bytes:map 4:stringData:string:map 3:type:string:plain
core.SecretEnvSource 1:localObjectReference:core.LocalObjectReference:inline 2:optional:bool
core.SecretKeySelector 1:localObjectReference:core.LocalObjectReference:inline 2:key:string:plain 3:optional:bool
core.SecretProjection 1:localObjectReference:core.LocalObjectReference:inline 2:items:core.KeyToPath:list 4:optional:bool
core.SecretReference 1:name:string:plain 2:namespace:string:plain
core.SecretVolumeSource 1:secretName:string:plain 2:items:core.KeyToPath:list 3:defaultMode:int 4:optional:bool
core.SecurityContext 1:capabilities:core.Capabilities 2:privileged:bool 3:seLinuxOptions:core.SELinuxOptions 10:windowsOptions:core.WindowsSecurityContextOptions 4:runAsUser:int 8:runAsGroup:int 5:runAsNonRoot:bool 6:readOnlyRootFilesystem:bool 7:allowPrivilegeEscalation:bool 9:procMount:string 11:seccompProfile:core.SeccompProfile 12:appArmorProfile:core.AppArmorProfile
core.Service 1:metadata:meta.ObjectMeta:plain 2:spec:core.ServiceSpec:plain 3:status:core.ServiceStatus:plain
core.ServiceAccount 1:metadata:meta.ObjectMeta:plain 2:secrets:core.ObjectReference:list 3:imagePullSecrets:core.LocalObjectReference:list 4:automountServiceAccountToken:bool
core.ServiceAccountTokenProjection 1:audience:string:plain 2:expirationSeconds:int 3:path:string:plain
core.ServicePort 1:name:string:plain 2:protocol:string:plain 6:appProtocol:string 3:port:int:plain 4:targetPort:intorstring:plain 5:nodePort:int:plain
core.ServiceSpec 1:ports:core.ServicePort:list 2:selector:string:map 3:clusterIP:string:plain 18:clusterIPs:string:list 4:type:string:plain 5:externalIPs:string:list 7:sessionAffinity:string:plain 8:loadBalancerIP:string:plain 9:loadBalancerSourceRanges:string:list 10:externalName:string:plain 11:externalTrafficPolicy:string:plain 12:healthCheckNodePort:int:plain 13:publishNotReadyAddresses:bool:plain 14:sessionAffinityConfig:core.SessionAffinityConfig 19:ipFamilies:string:list 17:ipFamilyPolicy:string 20:allocateLoadBalancerNodePorts:bool 21:loadBalancerClass:string 22:internalTrafficPolicy:string 23:trafficDistribution:string
core.ServiceStatus 1:loadBalancer:core.LoadBalancerStatus:plain 2:conditions:meta.Condition:list
core.SessionAffinityConfig 1:clientIP:core.ClientIPConfig
core.SleepAction 1:seconds:int:plain
core.StorageOSPersistentVolumeSource 1:volumeName:string:plain 2:volumeNamespace:string:plain 3:fsType:string:plain 4:readOnly:bool:plain 5:secretRef:core.ObjectReference
core.StorageOSVolumeSource 1:volumeName:string:plain 2:volumeNamespace:string:plain 3:fsType:string:plain 4:readOnly:bool:plain 5:secretRef:core.LocalObjectReference
core.Sysctl 1:name:string:plain 2:value:string:plain
core.TCPSocketAction 1:port:intorstring:plain 2:host:string:plain
core.Taint 1:key:string:plain 2:value:string:plain 3:effect:string:plain 4:timeAdded:time
core.Toleration 1:key:string:plain 2:operator:string:plain 3:value:string:plain 4:effect:string:plain 5:tolerationSeconds:int
core.TopologySelectorLabelRequirement 1:key:string:plain 2:values:string:list
core.TopologySelectorTerm 1:matchLabelExpressions:core.TopologySelectorLabelRequirement:list
core.TopologySpreadConstraint 1:maxSkew:int:plain 2:topologyKey:string:plain 3:whenUnsatisfiable:string:plain 4:labelSelector:meta.LabelSelector 5:minDomains:int 6:nodeAffinityPolicy:string 7:nodeTaintsPolicy:string 8:matchLabelKeys:string:list
core.TypedLocalObjectReference 1:apiGroup:string 2:kind:string:plain 3:name:string:plain
core.TypedObjectReference 1:apiGroup:string 2:kind:string:plain 3:name:string:plain 4:namespace:string
core.Volume 1:name:string:plain 2:volumeSource:core.VolumeSource:inline
core.VolumeDevice 1:name:string:plain 2:devicePath:string:plain
core.VolumeMount 1:name:string:plain 2:readOnly:bool:plain 7:recursiveReadOnly:string 3:mountPath:string:plain 4:subPath:string:plain 5:mountPropagation:string 6:subPathExpr:string:plain
core.VolumeMountStatus 1:name:string:plain 2:mountPath:string:plain 3:readOnly:bool:plain 4:recursiveReadOnly:string
core.VolumeNodeAffinity 1:required:core.NodeSelector
core.VolumeProjection 1:secret:core.SecretProjection 2:downwardAPI:core.DownwardAPIProjection 3:configMap:core.ConfigMapProjection 4:serviceAccountToken:core.ServiceAccountTokenProjection 5:clusterTrustBundle:core.ClusterTrustBundleProjection
core.VolumeResourceRequirements 1:limits:quantity:map 2:requests:quantity:map
core.VolumeSource 1:hostPath:core.HostPathVolumeSource 2:emptyDir:core.EmptyDirVolumeSource 3:gcePersistentDisk:core.GCEPersistentDiskVolumeSource 4:awsElasticBlockStore:core.AWSElasticBlockStoreVolumeSource 5:gitRepo:core.GitRepoVolumeSource 6:secret:core.SecretVolumeSource 7:nfs:core.NFSVolumeSource 8:iscsi:core.ISCSIVolumeSource 9:glusterfs:core.GlusterfsVolumeSource 10:persistentVolumeClaim:core.PersistentVolumeClaimVolumeSource 11:rbd:core.RBDVolumeSource 12:flexVolume:core.FlexVolumeSource 13:cinder:core.CinderVolumeSource 14:cephfs:core.CephFSVolumeSource 15:flocker:core.FlockerVolumeSource 16:downwardAPI:core.DownwardAPIVolumeSource 17:fc:core.FCVolumeSource 18:azureFile:core.AzureFileVolumeSource 19:configMap:core.ConfigMapVolumeSource 20:vsphereVolume:core.VsphereVirtualDiskVolumeSource 21:quobyte:core.QuobyteVolumeSource 22:azureDisk:core.AzureDiskVolumeSource 23:photonPersistentDisk:core.PhotonPersistentDiskVolumeSource 26:projected:core.ProjectedVolumeSource 24:portworxVolume:core.PortworxVolumeSource 25:scaleIO:core.ScaleIOVolumeSource 27:storageos:core.StorageOSVolumeSource 28:csi:core.CSIVolumeSource 29:ephemeral:core.EphemeralVolumeSource 30:image:core.ImageVolumeSource
core.VsphereVirtualDiskVolumeSource 1:volumePath:string:plain 2:fsType:string:plain 3:storagePolicyName:string:plain 4:storagePolicyID:string:plain
core.WeightedPodAffinityTerm 1:weight:int:plain 2:podAffinityTerm:core.PodAffinityTerm:plain
core.WindowsSecurityContextOptions 1:gmsaCredentialSpecName:string 2:gmsaCredentialSpec:string 3:runAsUserName:string 4:hostProcess:bool
`
