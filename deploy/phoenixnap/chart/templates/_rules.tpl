{{/* Written by `cargo xtask generate`. */}}
{{- define "cloud-provider-phoenixnap.clusterRules" }}
  # informers: list, watch
  # cloud-node: get, patch
  # cloud-node-lifecycle: get, patch, delete
  - apiGroups: [""]
    resources: [nodes]
    verbs: [get, list, watch, patch, delete]
  # informers: list, watch
  # provider's Service annotations: patch
  # provider's load balancer IP: patch
  - apiGroups: [""]
    resources: [services]
    verbs: [list, watch, patch]
  # cloud-node: patch
  - apiGroups: [""]
    resources: [nodes/status]
    verbs: [patch]
  # service: patch
  - apiGroups: [""]
    resources: [services/status]
    verbs: [patch]
  # events: create, patch
  - apiGroups: [""]
    resources: [events]
    verbs: [create, patch]
  # reviews: create
  - apiGroups: [authentication.k8s.io]
    resources: [tokenreviews]
    verbs: [create]
  # reviews: create
  - apiGroups: [authorization.k8s.io]
    resources: [subjectaccessreviews]
    verbs: [create]
  # provider's cluster UID: get
  - apiGroups: [""]
    resources: [namespaces]
    resourceNames: [kube-system]
    verbs: [get]
{{- end }}
{{- define "cloud-provider-phoenixnap.systemRules" }}
  # leader election: create
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [create]
  # leader election: get, update, watch
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: [cloud-controller-manager, cloud-provider-extraction-migration]
    verbs: [get, watch, update]
{{- end }}
