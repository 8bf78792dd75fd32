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
{{ .Values.accessToken }}
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
