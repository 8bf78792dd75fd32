{{/* CEL: whether the manager serves the Service's class in this cloud (root, cloud), by the flags load-balancer-class and
     load-balancer-without-class, or by what additionalClouds says. */}}
{{- define "bowline.admission.class" -}}
{{- $classes := list -}}
{{- $without := "true" -}}
{{- $of := "" -}}
{{- if .root.Values.additionalClouds }}{{ $of = printf "%s=" (include "bowline.settings" .root | fromYaml).cloudProvider }}{{ end -}}
{{- with index (.root.Values.additionalClouds | default dict) .cloud -}}
  {{- $classes = .loadBalancerClasses -}}
  {{- $without = "false" -}}
{{- else -}}
  {{- range include "bowline.flags" .root | fromYamlArray -}}
    {{- if eq .name "load-balancer-class" }}{{ $classes = append $classes (trimPrefix $of .text) }}{{ end -}}
    {{- if eq .name "load-balancer-without-class" }}{{ $without = .text }}{{ end -}}
  {{- end -}}
{{- end -}}
{{- $without = not (has (lower $without) (list "false" "f" "0")) -}}
{{- if $classes -}}
has(object.spec.loadBalancerClass) ? object.spec.loadBalancerClass in {{ toJson $classes }} : {{ $without }}
{{- else -}}
!has(object.spec.loadBalancerClass)
{{- end -}}
{{- end }}

{{/* What selects the pods. It is the Go manager's: the selector of an object that is there cannot be changed. */}}
{{- define "bowline.selector" -}}
{{- $settings := include "bowline.settings" . | fromYaml -}}
{{- if eq .Values.former "chart" -}}
app: {{ $settings.name }}
component: controllermanager
release: {{ .Release.Name }}
{{- else -}}
{{ $settings.label }}: {{ $settings.name }}
{{- end -}}
{{- end }}

{{/* The metadata of an object: root, name, and if there are some namespace, labels and annotations. */}}
{{- define "bowline.metadata" -}}
{{- $values := .root.Values -}}
{{- $labels := dict -}}
{{- if $values.standardLabels -}}
  {{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
  {{- $_ := set $labels "app.kubernetes.io/name" .root.Chart.Name -}}
  {{- $_ := set $labels "app.kubernetes.io/instance" .root.Release.Name -}}
  {{- $_ := set $labels "app.kubernetes.io/version" .root.Chart.AppVersion -}}
  {{- $_ := set $labels "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- end -}}
{{- $labels = mergeOverwrite $labels (deepCopy ($values.commonLabels | default dict)) (.labels | default dict) -}}
{{- $annotations := mergeOverwrite (deepCopy ($values.commonAnnotations | default dict)) (.annotations | default dict) -}}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $labels }}
  labels:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* A binding: root, kind, name, namespace, roleKind, role, account, accountNamespace. */}}
{{- define "bowline.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
{{ include "bowline.metadata" . }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .roleKind }}
  name: {{ .role }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ .accountNamespace }}
{{- end }}

{{- define "bowline.image" -}}
{{- $image := .Values.image -}}
{{- $tag := $image.tag | default .Chart.AppVersion -}}
{{- if $image.digest -}}
{{- /* The tag of a released chart has its digest. */ -}}
{{- printf "%s:%s@%s" $image.repository (splitList "@" $tag | first) $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository $tag -}}
{{- end -}}
{{- end }}
