{{/* Written by `cargo xtask generate`. */}}
{{- define "bowline.rules.cloudscale.all.cluster" }}
  # informers: list, watch
  # cloud-node: get, patch
  # cloud-node-lifecycle: get, patch, delete
  - apiGroups: [""]
    resources: [nodes]
    verbs: [get, list, watch, patch, delete]
  # informers: list, watch
  # provider's Service annotations: patch
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
{{- end }}
{{- define "bowline.rules.cloudscale.all.system" }}
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
{{- define "bowline.rules.cloudscale.accounts.cluster" }}
  # informers: list, watch
  - apiGroups: [""]
    resources: [nodes]
    verbs: [list, watch]
  # informers: list, watch
  - apiGroups: [""]
    resources: [services]
    verbs: [list, watch]
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
{{- end }}
{{- define "bowline.rules.cloudscale.accounts.system" }}
  # leader election: create
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [create]
  # leader election: get, update, watch
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: [cloud-controller-manager, cloud-provider-extraction-migration]
    verbs: [get, watch, update]
  # service accounts: create
  - apiGroups: [""]
    resources: [serviceaccounts]
    verbs: [create]
  # service accounts: get
  - apiGroups: [""]
    resources: [serviceaccounts]
    resourceNames: [node-controller, service-controller, route-controller, cloudscale-cloud-controller-manager]
    verbs: [get]
  # service accounts: create
  - apiGroups: [""]
    resources: [serviceaccounts/token]
    resourceNames: [node-controller, service-controller, route-controller, cloudscale-cloud-controller-manager]
    verbs: [create]
{{- end }}
{{- define "bowline.rules.cloudscale.provider" }}
  # provider's Service annotations: patch
  - apiGroups: [""]
    resources: [services]
    verbs: [patch]
{{- end }}
{{- define "bowline.rules.cloudscale.former" }}
  # From here on: what the Go manager's role has, so that a return takes nothing but its image. Nothing of it is used
  # beyond the rules above: who does not want to go back takes it out.
  - apiGroups: [""]
    resources: [events]
    verbs: [create, patch, update]
  - apiGroups: [""]
    resources: [nodes]
    verbs: ["*"]
  - apiGroups: [""]
    resources: [nodes/status]
    verbs: [patch]
  - apiGroups: [""]
    resources: [services]
    verbs: [list, patch, update, watch]
  - apiGroups: [""]
    resources: [services/status]
    verbs: [list, patch, update, watch]
  - apiGroups: [""]
    resources: [serviceaccounts]
    verbs: [create]
  - apiGroups: [""]
    resources: [persistentvolumes]
    verbs: [get, list, update, watch]
  - apiGroups: [""]
    resources: [endpoints]
    verbs: [create, get, list, watch, update]
  - apiGroups: [""]
    resources: [configmaps]
    verbs: [get, list, watch]
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [get, create, update]
{{- end }}
{{- define "bowline.rules.phoenixnap.all.cluster" }}
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
{{- define "bowline.rules.phoenixnap.all.system" }}
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
{{- define "bowline.rules.phoenixnap.accounts.cluster" }}
  # informers: list, watch
  - apiGroups: [""]
    resources: [nodes]
    verbs: [list, watch]
  # informers: list, watch
  - apiGroups: [""]
    resources: [services]
    verbs: [list, watch]
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
{{- define "bowline.rules.phoenixnap.accounts.system" }}
  # leader election: create
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [create]
  # leader election: get, update, watch
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: [cloud-controller-manager, cloud-provider-extraction-migration]
    verbs: [get, watch, update]
  # service accounts: create
  - apiGroups: [""]
    resources: [serviceaccounts]
    verbs: [create]
  # service accounts: get
  - apiGroups: [""]
    resources: [serviceaccounts]
    resourceNames: [node-controller, service-controller, route-controller, cloud-provider-phoenixnap-shared-informers]
    verbs: [get]
  # service accounts: create
  - apiGroups: [""]
    resources: [serviceaccounts/token]
    resourceNames: [node-controller, service-controller, route-controller, cloud-provider-phoenixnap-shared-informers]
    verbs: [create]
{{- end }}
{{- define "bowline.rules.phoenixnap.provider" }}
  # provider's Service annotations: patch
  # provider's load balancer IP: patch
  - apiGroups: [""]
    resources: [services]
    verbs: [patch]
{{- end }}
{{- define "bowline.rules.phoenixnap.former" }}
  # From here on: what the Go manager's role has, so that a return takes nothing but its image. Nothing of it is used
  # beyond the rules above: who does not want to go back takes it out.
  - apiGroups: [""]
    resources: [namespaces]
    verbs: [get]
  - apiGroups: [""]
    resources: [nodes]
    verbs: ["*"]
  - apiGroups: [""]
    resources: [nodes/status]
    verbs: [patch]
  - apiGroups: [""]
    resources: [services]
    verbs: [get, list, watch, create, update, patch]
  - apiGroups: [""]
    resources: [services/status]
    verbs: [list, watch, update, patch]
  - apiGroups: [""]
    resources: [endpoints]
    verbs: [create, get, list, watch, update, patch]
  - apiGroups: [""]
    resources: [configmaps]
    verbs: [create, get, list, watch, update, patch]
  - apiGroups: [""]
    resources: [events]
    verbs: [create, get, list, watch, update, patch]
{{- end }}
{{- define "bowline.rules.cloudstack.all.cluster" }}
  # informers: list, watch
  # cloud-node: get, patch
  # cloud-node-lifecycle: get, patch, delete
  - apiGroups: [""]
    resources: [nodes]
    verbs: [get, list, watch, patch, delete]
  # informers: list, watch
  # provider's Service annotations: patch
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
{{- end }}
{{- define "bowline.rules.cloudstack.all.system" }}
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
{{- define "bowline.rules.cloudstack.accounts.cluster" }}
  # informers: list, watch
  - apiGroups: [""]
    resources: [nodes]
    verbs: [list, watch]
  # informers: list, watch
  - apiGroups: [""]
    resources: [services]
    verbs: [list, watch]
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
{{- end }}
{{- define "bowline.rules.cloudstack.accounts.system" }}
  # leader election: create
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [create]
  # leader election: get, update, watch
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: [cloud-controller-manager, cloud-provider-extraction-migration]
    verbs: [get, watch, update]
  # service accounts: create
  - apiGroups: [""]
    resources: [serviceaccounts]
    verbs: [create]
  # service accounts: get
  - apiGroups: [""]
    resources: [serviceaccounts]
    resourceNames: [node-controller, service-controller, route-controller, cloud-controller-manager]
    verbs: [get]
  # service accounts: create
  - apiGroups: [""]
    resources: [serviceaccounts/token]
    resourceNames: [node-controller, service-controller, route-controller, cloud-controller-manager]
    verbs: [create]
{{- end }}
{{- define "bowline.rules.cloudstack.provider" }}
  # provider's Service annotations: patch
  - apiGroups: [""]
    resources: [services]
    verbs: [patch]
{{- end }}
{{- define "bowline.rules.cloudstack.former" }}
  # From here on: what the Go manager's role has, so that a return takes nothing but its image. Nothing of it is used
  # beyond the rules above: who does not want to go back takes it out.
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [get, create, update]
  - apiGroups: [""]
    resources: [configmaps]
    verbs: [list, watch]
  - apiGroups: [""]
    resources: [events]
    verbs: [create, patch, update]
  - apiGroups: [""]
    resources: [nodes]
    verbs: ["*"]
  - apiGroups: [""]
    resources: [nodes/status]
    verbs: [patch]
  - apiGroups: [""]
    resources: [pods]
    verbs: [list, get]
  - apiGroups: [""]
    resources: [services]
    verbs: [get, list, patch, update, watch]
  - apiGroups: [""]
    resources: [services/status]
    verbs: [list, patch, update, watch]
  - apiGroups: [""]
    resources: [serviceaccounts]
    verbs: [create]
  - apiGroups: [""]
    resources: [endpoints]
    verbs: [create, get, list, watch, update]
  - apiGroups: [""]
    resources: [persistentvolumes]
    verbs: [list, watch, patch]
{{- end }}
{{- define "bowline.rules.openstack.all.cluster" }}
  # informers: list, watch
  # cloud-node: get, patch
  # cloud-node-lifecycle: get, patch, delete
  - apiGroups: [""]
    resources: [nodes]
    verbs: [get, list, watch, patch, delete]
  # informers: list, watch
  # provider's Service annotations: patch
  - apiGroups: [""]
    resources: [services]
    verbs: [list, watch, patch]
  # cloud-node: patch
  # route: patch
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
{{- end }}
{{- define "bowline.rules.openstack.all.system" }}
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
{{- define "bowline.rules.openstack.accounts.cluster" }}
  # informers: list, watch
  - apiGroups: [""]
    resources: [nodes]
    verbs: [list, watch]
  # informers: list, watch
  - apiGroups: [""]
    resources: [services]
    verbs: [list, watch]
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
{{- end }}
{{- define "bowline.rules.openstack.accounts.system" }}
  # leader election: create
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [create]
  # leader election: get, update, watch
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: [cloud-controller-manager, cloud-provider-extraction-migration]
    verbs: [get, watch, update]
  # service accounts: create
  - apiGroups: [""]
    resources: [serviceaccounts]
    verbs: [create]
  # service accounts: get
  - apiGroups: [""]
    resources: [serviceaccounts]
    resourceNames: [node-controller, service-controller, route-controller, cloud-controller-manager]
    verbs: [get]
  # service accounts: create
  - apiGroups: [""]
    resources: [serviceaccounts/token]
    resourceNames: [node-controller, service-controller, route-controller, cloud-controller-manager]
    verbs: [create]
{{- end }}
{{- define "bowline.rules.openstack.provider" }}
  # provider's Service annotations: patch
  - apiGroups: [""]
    resources: [services]
    verbs: [patch]
{{- end }}
{{- define "bowline.rules.openstack.former" }}
  # From here on: what the Go manager's role has, so that a return takes nothing but its image. Nothing of it is used
  # beyond the rules above: who does not want to go back takes it out.
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [get, create, update]
  - apiGroups: [""]
    resources: [events]
    verbs: [create, patch, update]
  - apiGroups: [""]
    resources: [nodes]
    verbs: ["*"]
  - apiGroups: [""]
    resources: [nodes/status]
    verbs: [patch]
  - apiGroups: [""]
    resources: [services]
    verbs: [list, patch, update, watch]
  - apiGroups: [""]
    resources: [services/status]
    verbs: [patch]
  - apiGroups: [""]
    resources: [serviceaccounts]
    verbs: [create, get]
  - apiGroups: [""]
    resources: [serviceaccounts/token]
    verbs: [create]
  - apiGroups: [""]
    resources: [persistentvolumes]
    verbs: ["*"]
  - apiGroups: [""]
    resources: [endpoints]
    verbs: [create, get, list, watch, update]
  - apiGroups: [""]
    resources: [configmaps]
    verbs: [get, list, watch]
  - apiGroups: [""]
    resources: [secrets]
    verbs: [list, get, watch]
{{- end }}
