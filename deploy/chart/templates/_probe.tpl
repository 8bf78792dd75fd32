{{/* A probe of the secure port: root, settings, name, path. */}}
{{- define "bowline.probe" -}}
{{- $given := index .root.Values .name -}}
{{- $probe := $given -}}
{{- if not $given -}}
  {{- $get := dict "scheme" "HTTPS" "path" .path "port" "https" -}}
  {{- if .settings.loopback -}}
    {{- $_ := set $get "host" .settings.bindAddress -}}
    {{- $_ := set $get "port" (int .root.Values.securePort) -}}
  {{- end -}}
  {{- $probe = dict "httpGet" $get "periodSeconds" 10 "timeoutSeconds" 5 -}}
  {{- if eq .name "livenessProbe" -}}
    {{- $probe = mergeOverwrite $probe (dict "periodSeconds" 20 "failureThreshold" 6) -}}
    {{- with .settings.liveAfterSeconds }}{{ $_ := set $probe "initialDelaySeconds" (int .) }}{{ end -}}
  {{- end -}}
{{- end -}}
{{ .name }}:
  {{- toYaml $probe | nindent 2 }}
{{- end }}
