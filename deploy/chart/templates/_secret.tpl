{{/* `true` if a value is given that belongs into the Secret. */}}
{{- define "bowline.given" -}}
{{- $given := or .Values.accessToken .Values.cloudConfigContents -}}
{{- range .Values.cloudConfig }}{{ range . }}{{ if not (kindIs "invalid" .) }}{{ $given = true }}{{ end }}{{ end }}{{ end -}}
{{- ternary "true" "false" (not (empty $given)) -}}
{{- end }}

{{/* `true` if the Secret is made here. */}}
{{- define "bowline.makesSecret" -}}
{{- $made := eq (include "bowline.given" .) "true" -}}
{{- if not (kindIs "invalid" .Values.secret.create) }}{{ $made = .Values.secret.create }}{{ end -}}
{{- ternary "true" "false" (and .Values.secret.enabled $made) -}}
{{- end }}

{{/* What the Secret holds under its one key. */}}
{{- define "bowline.contents" -}}
{{- $format := dig "secret" "format" "" (include "bowline.settings" . | fromYaml) -}}
{{- if .Values.accessToken -}}
{{ trim .Values.accessToken }}
{{- else if .Values.cloudConfigContents -}}
{{ .Values.cloudConfigContents }}
{{- else if eq $format "json" -}}
{{ include "bowline.json" .Values.cloudConfig.global }}
{{- else -}}
{{ include "bowline.ini" .Values.cloudConfig }}
{{- end -}}
{{- end }}

{{/* One JSON object, for phoenixNAP. Its only number is the port of the API server. */}}
{{- define "bowline.json" -}}
{{- $object := dict -}}
{{- range $key, $value := . -}}
  {{- if eq (lower $key) "apiserverport" -}}
    {{- $_ := set $object $key (int $value) -}}
  {{- else if not (empty $value) -}}
    {{- $_ := set $object $key (include "bowline.text" $value) -}}
  {{- end -}}
{{- end -}}
{{- toJson $object -}}
{{- end }}

{{/* Sections and keys, every value in double quotes, in which it may hold # and ; too. A key without a value is left out. */}}
{{- define "bowline.ini" -}}
{{- range $name := list "global" "networking" "loadBalancer" "blockStorage" "metadata" "route" }}
{{- with index $ $name }}
[{{ title $name }}]
{{- range $key, $value := . }}
{{- if not (kindIs "invalid" $value) }}
{{ $key }} = {{ include "bowline.text" $value | quote }}
{{- end }}
{{- end }}
{{ end }}
{{- end }}
{{- end }}

{{/* Whether what is given as credentials fits the cloud: the root of one cloud, and `at`, what stands in front of its values. */}}
{{- define "bowline.checkGiven" -}}
{{- $cloud := .Values.cloud -}}
{{- $at := .at | default "" -}}
{{- $sections := list -}}
{{- range $name, $keys := .Values.cloudConfig }}{{ if $keys }}{{ $sections = append $sections $name }}{{ end }}{{ end -}}
{{- if eq $cloud "cloudscale" -}}
  {{- if or $sections .Values.cloudConfigContents -}}
    {{- fail (printf "cloudscale has no configuration file: give %saccessToken instead of cloudConfig or cloudConfigContents." $at) -}}
  {{- end -}}
{{- else -}}
  {{- if .Values.accessToken -}}
    {{- fail (printf "%saccessToken is for cloudscale, and cloud is %s: give cloudConfig.global or cloudConfigContents instead." $at $cloud) -}}
  {{- end -}}
  {{- range $sections -}}
    {{- if and (ne . "global") (ne $cloud "openstack") -}}
      {{- fail (printf "%scloudConfig.%s is for openstack, and cloud is %s: its keys are all in cloudConfig.global." $at . $cloud) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if eq $cloud "phoenixnap" -}}
  {{- range $key, $value := .Values.cloudConfig.global -}}
    {{- $text := include "bowline.text" $value -}}
    {{- if and (eq (lower $key) "apiserverport") (not (empty $value)) (not (and (regexMatch "^[0-9]{1,5}$" $text) (le (int $text) 65535))) -}}
      {{- fail (printf "%scloudConfig.global.%s is %s, and has to be a port: a whole number from 0 to 65535." $at $key $text) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if and .Values.secret.create (ne (include "bowline.given" .) "true") -}}
  {{- fail (printf "%ssecret.create is true, and nothing is given to put into it: give %s." $at (ternary "accessToken" "cloudConfig.global or cloudConfigContents" (eq $cloud "cloudscale"))) -}}
{{- end -}}
{{- /* What the former chart took is taken on: with its values an upgrade has to go through. */}}
{{- $isStrict := ne .Values.former "chart" -}}
{{- if and $isStrict (not .Values.secret.enabled) .Values.secret.create -}}
  {{- fail (printf "%ssecret.create is true, and secret.enabled is false, which makes none: leave one of them out." $at) -}}
{{- end -}}
{{- if and $isStrict (ne (include "bowline.makesSecret" .) "true") (eq (include "bowline.given" .) "true") -}}
  {{- fail (printf "%ssecret.%s is false, and %s would be in no Secret: leave one of them out." $at (ternary "create" "enabled" .Values.secret.enabled) (ternary "accessToken" "what is given as cloudConfig or cloudConfigContents" (eq $cloud "cloudscale"))) -}}
{{- end -}}
{{- end }}

{{/* Credentials that would not reach the manager: what is missing of them, and what to do. */}}
{{- define "bowline.checkCredentials" -}}
{{- $settings := .settings -}}
{{- $cloud := .root.Values.cloud -}}
{{- $at := .root.at | default "" -}}
{{- with .root.Values -}}
{{- $variables := list -}}
{{- range .extraEnv }}{{ $variables = append $variables .name }}{{ end -}}
{{- if and .cloudConfig.global (not .cloudConfigContents) -}}
  {{- $present := list -}}
  {{- range $key, $value := .cloudConfig.global }}{{ if not (empty $value) }}{{ $present = append $present (lower $key) }}{{ end }}{{ end -}}
  {{- range $settings.secret.required -}}
    {{- if not (or (has (lower .key) $present) (and .variable (or $.root.Values.envFrom (has .variable $variables)))) -}}
      {{- fail (printf "%scloudConfig.global has no %s, without which the manager does not start: give it%s." $at .key (ternary (printf ", or %s in extraEnv" .variable) "" (not (empty .variable)))) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if .cloudConfigContents -}}
  {{- /* A comma before the last brace is taken, as the former manager's sample has one. */}}
  {{- $read := regexReplaceAll ",(\\s*})" .cloudConfigContents "${1}" | fromJson -}}
  {{- if and (eq $settings.secret.format "json") (hasKey $read "Error") -}}
    {{- fail (printf "%scloudConfigContents is no JSON object, as the file of %s has to be: %s." $at $cloud (index $read "Error")) -}}
  {{- end -}}
  {{- if and (eq $settings.secret.format "ini") (not (regexMatch "(?im)^[ \t]*\\[[ \t]*global[ \t]*\\]" .cloudConfigContents)) -}}
    {{- fail (printf "%scloudConfigContents has no section [Global], as the file of %s has to have." $at $cloud) -}}
  {{- end -}}
{{- end -}}
{{- /* Whatever puts credentials into the pod from outside does it by one of these. */}}
{{- $brings := or .extraVolumes .extraInitContainers .podAnnotations .commonAnnotations .podLabels .commonLabels -}}
{{- if and (not .secret.enabled) (not (or $brings .extraEnv .envFrom)) -}}
  {{- fail (printf "%ssecret.enabled is false, and nothing else brings the credentials: give %s." $at (ternary "extraEnv or envFrom" "extraVolumes, extraVolumeMounts and flags.cloud-config" (not (empty $settings.secret.variable)))) -}}
{{- end -}}
{{- $path := include "bowline.flag" (dict "root" $.root "name" "cloud-config") -}}
{{- if and $path $settings.secret.mountPath (not .additionalClouds) -}}
  {{- /* What a variable says is not known here. */}}
  {{- $isMounted := or (contains "$(" $path) (hasPrefix $settings.secret.mountPath $path) -}}
  {{- range concat ($settings.volumeMounts | default list) (.extraVolumeMounts | default list) }}{{ if hasPrefix .mountPath $path }}{{ $isMounted = true }}{{ end }}{{ end -}}
  {{- if not (or $isMounted $brings) -}}
    {{- fail (printf "The flag cloud-config is %s, where nothing is mounted: leave it out, which is %s/%s from the Secret, or give extraVolumes and extraVolumeMounts." $path $settings.secret.mountPath $settings.secret.key) -}}
  {{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
