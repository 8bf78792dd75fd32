{{/* What each of additionalClouds brings, by its name: `settings` of its preset, `classes`, and `contents` if the chart makes its Secret.
     Its values are those of the release, but for the credentials, which each cloud has of its own. */}}
{{- define "bowline.additional" -}}
{{- $all := dict -}}
{{- $shared := omit .Values.AsMap "accessToken" "cloudConfig" "cloudConfigContents" "secret" -}}
{{- range $name, $entry := .Values.additionalClouds -}}
  {{- $at := printf "additionalClouds.%s." $name -}}
  {{- $own := dict "cloud" $name "accessToken" ($entry.accessToken | default "") "cloudConfigContents" ($entry.cloudConfigContents | default "") "cloudConfig" ($entry.cloudConfig | default dict) "secret" (merge (dict) ($entry.secret | default dict) (dict "enabled" true)) -}}
  {{- $root := dict "Values" (merge $own $shared) "Files" $.Files "Release" $.Release "Chart" $.Chart "at" $at -}}
  {{- $settings := include "bowline.settings" $root | fromYaml -}}
  {{- include "bowline.checkGiven" $root -}}
  {{- include "bowline.checkCredentials" (dict "root" $root "settings" $settings) -}}
  {{- $brought := dict "settings" $settings "classes" $entry.loadBalancerClasses "secretEnabled" $own.secret.enabled -}}
  {{- if eq (include "bowline.makesSecret" $root) "true" }}{{ $_ := set $brought "contents" (include "bowline.contents" $root) }}{{ end -}}
  {{- $_ := set $all $name $brought -}}
{{- end -}}
{{- toJson $all -}}
{{- end }}

{{/* The flags that say which clouds there are, where there are several: the first one has the Services without a class. */}}
{{- define "bowline.cloudFlags" -}}
{{- $additional := include "bowline.additional" .root | fromJson -}}
{{- $providers := list .settings.cloudProvider -}}
{{- $files := list -}}
{{- $classes := list -}}
{{- $more := list -}}
{{- range concat .settings.command (.settings.args | default list) -}}
  {{- if hasPrefix "--cloud-config=" . }}{{ $files = append $files (printf "%s=%s" $.settings.cloudProvider (trimPrefix "--cloud-config=" .)) }}{{ end -}}
{{- end -}}
{{- range $additional -}}
  {{- $provider := .settings.cloudProvider -}}
  {{- $providers = append $providers $provider -}}
  {{- with .settings.secret }}{{ if .mountPath }}{{ $files = append $files (printf "%s=%s/%s" $provider .mountPath .key) }}{{ end }}{{ end -}}
  {{- range .classes }}{{ $classes = append $classes (printf "--load-balancer-class=%s=%s" $provider .) }}{{ end -}}
  {{- $more = concat $more (.settings.additionalFlags | default list) -}}
{{- end -}}
{{- $words := list (printf "--cloud-provider=%s" (join "," $providers)) -}}
{{- if $files }}{{ $words = append $words (printf "--cloud-config=%s" (join "," $files)) }}{{ end -}}
{{- toYaml (concat $words $classes ($more | uniq)) -}}
{{- end }}

{{/* Faults of several clouds together: what the manager would not start with. */}}
{{- define "bowline.checkClouds" -}}
{{- $first := .settings.cloudProvider -}}
{{- with .root -}}
{{- $taken := dict -}}
{{- if hasKey .Values.additionalClouds .Values.cloud -}}
  {{- fail (printf "additionalClouds has %s, which is the value of cloud: leave it out." .Values.cloud) -}}
{{- end -}}
{{- if include "bowline.flag" (dict "root" . "name" "cloud-config") -}}
  {{- fail "flags.cloud-config names one file, and with additionalClouds each cloud has its own: leave the flag out. The files are where the Secrets are mounted." -}}
{{- end -}}
{{- range include "bowline.flags" . | fromYamlArray -}}
  {{- if eq .name "load-balancer-class" -}}
    {{- if not (hasPrefix (printf "%s=" $first) .text) -}}
      {{- fail (printf "load-balancer-class is %s, and with additionalClouds it has to be %s=CLASS. Classes of the other clouds are additionalClouds.CLOUD.loadBalancerClasses." .text $first) -}}
    {{- end -}}
    {{- $_ := set $taken (trimPrefix (printf "%s=" $first) .text) $first -}}
  {{- end -}}
{{- end -}}
{{- range $name, $entry := .Values.additionalClouds -}}
  {{- range $entry.loadBalancerClasses -}}
    {{- if ne (get $taken . | default $name) $name -}}
      {{- fail (printf "additionalClouds.%s.loadBalancerClasses has %s, which %s has too: a Service has one cloud, so give the class to one of them." $name . (get $taken .)) -}}
    {{- end -}}
    {{- $_ := set $taken . $name -}}
  {{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The rules of additionalClouds that the cloud itself has not: root, part. */}}
{{- define "bowline.furtherRules" -}}
{{- $root := .root -}}
{{- $part := .part -}}
{{- $rules := include (printf "bowline.rules.%s.%s" $root.Values.cloud $part) $root | fromYamlArray -}}
{{- range $name, $_ := $root.Values.additionalClouds -}}
  {{- range include (printf "bowline.rules.%s.%s" $name $part) $root | fromYamlArray -}}
    {{- if not (has . $rules) }}
  # {{ $name }}
  {{- list . | toYaml | nindent 2 }}
    {{- end -}}
    {{- $rules = append $rules . -}}
  {{- end -}}
{{- end -}}
{{- end }}

{{/* The clouds of the release, one a line: `cloud`, then additionalClouds. */}}
{{- define "bowline.clouds" -}}
{{- prepend (keys (.Values.additionalClouds | default dict) | sortAlpha) .Values.cloud | join "," -}}
{{- end }}
