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

{{/* Credentials that would not reach the manager: what is missing of them, and what to do. */}}
{{- define "bowline.checkCredentials" -}}
{{- $settings := .settings -}}
{{- $cloud := .root.Values.cloud -}}
{{- with .root.Values -}}
{{- $variables := list -}}
{{- range .extraEnv }}{{ $variables = append $variables .name }}{{ end -}}
{{- if and .cloudConfig.global (not .cloudConfigContents) -}}
  {{- $present := list -}}
  {{- range $key, $value := .cloudConfig.global }}{{ if not (empty $value) }}{{ $present = append $present (lower $key) }}{{ end }}{{ end -}}
  {{- range $settings.secret.required -}}
    {{- if not (or (has (lower .key) $present) (and .variable (or $.root.Values.envFrom (has .variable $variables)))) -}}
      {{- fail (printf "cloudConfig.global has no %s, without which the manager does not start: give it%s." .key (ternary (printf ", or %s in extraEnv" .variable) "" (not (empty .variable)))) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if .cloudConfigContents -}}
  {{- /* A comma before the last brace is taken, as the former manager's sample has one. */}}
  {{- $read := regexReplaceAll ",(\\s*})" .cloudConfigContents "${1}" | fromJson -}}
  {{- if and (eq $settings.secret.format "json") (hasKey $read "Error") -}}
    {{- fail (printf "cloudConfigContents is no JSON object, as the file of %s has to be: %s." $cloud (index $read "Error")) -}}
  {{- end -}}
  {{- if and (eq $settings.secret.format "ini") (not (regexMatch "(?im)^[ \t]*\\[[ \t]*global[ \t]*\\]" .cloudConfigContents)) -}}
    {{- fail (printf "cloudConfigContents has no section [Global], as the file of %s has to have." $cloud) -}}
  {{- end -}}
{{- end -}}
{{- /* Whatever puts credentials into the pod from outside does it by one of these. */}}
{{- $brings := or .extraVolumes .extraInitContainers .podAnnotations .commonAnnotations .podLabels .commonLabels -}}
{{- if and (not .secret.enabled) (not (or $brings .extraEnv .envFrom)) -}}
  {{- fail (printf "secret.enabled is false, and nothing else brings the credentials: give %s." (ternary "extraEnv or envFrom" "extraVolumes, extraVolumeMounts and flags.cloud-config" (not (empty $settings.secret.variable)))) -}}
{{- end -}}
{{- $path := include "bowline.flag" (dict "root" $.root "name" "cloud-config") -}}
{{- if and $path $settings.secret.mountPath -}}
  {{- /* What a variable says is not known here. */}}
  {{- $isMounted := or (contains "$(" $path) (hasPrefix $settings.secret.mountPath $path) -}}
  {{- range concat ($settings.volumeMounts | default list) (.extraVolumeMounts | default list) }}{{ if hasPrefix .mountPath $path }}{{ $isMounted = true }}{{ end }}{{ end -}}
  {{- if not (or $isMounted $brings) -}}
    {{- fail (printf "The flag cloud-config is %s, where nothing is mounted: leave it out, which is %s/%s from the Secret, or give extraVolumes and extraVolumeMounts." $path $settings.secret.mountPath $settings.secret.key) -}}
  {{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
