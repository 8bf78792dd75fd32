{{/* Faults in the values that the schema cannot see. Each says which value, and what to do. */}}
{{- define "bowline.check" -}}
{{- $cloud := .Values.cloud -}}
{{- $isStrict := ne .Values.former "chart" -}}
{{- include "bowline.checkGiven" . -}}
{{- if and (eq .Values.former "chart") (ne $cloud "openstack") -}}
  {{- fail (printf "former=chart is for openstack, and cloud is %s. The chart of cloud-provider-phoenixnap lives on in deploy/phoenixnap/chart; the others had none." $cloud) -}}
{{- end -}}
{{- if and (eq .Values.former "chart") (eq (base (toString .Values.image.repository)) "openstack-cloud-controller-manager") -}}
  {{- fail (printf "image.repository is %s, the Go manager's image, kept from the values of the former chart: name Bowline's, as in --set image.repository=REGISTRY/bowline --set image.tag= (an empty tag is this chart's version)." .Values.image.repository) -}}
{{- end -}}
{{- if dig "serviceMonitor" "enabled" false .Values.AsMap -}}
  {{- fail "serviceMonitor is of the former chart: leave it out, and set podMonitor.enabled=true." -}}
{{- end -}}
{{- if and .Values.bindAddress (not (regexMatch "^(|((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])|([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}(:[0-9a-fA-F]{1,4}){0,6})?::([0-9a-fA-F]{1,4}(:[0-9a-fA-F]{1,4}){0,6})?)$" .Values.bindAddress)) -}}
  {{- fail (printf "bindAddress is %q, which is no IP address: give an address of the node, 0.0.0.0 or ::. The port is securePort." .Values.bindAddress) -}}
{{- end -}}
{{- if and $isStrict (eq .Release.Namespace "default") (not .Values.allowDefaultNamespace) -}}
  {{- fail "The release would go into the namespace default: give --namespace kube-system, or set allowDefaultNamespace=true." -}}
{{- end -}}
{{- range $value, $kind := dict "podMonitor" "PodMonitor" "prometheusRule" "PrometheusRule" -}}
  {{- if and (index $.Values $value).enabled (not ($.Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" $kind))) -}}
    {{- /* `helm template` asks no cluster, so there nobody knows which kinds it has. */}}
    {{- if lookup "v1" "Namespace" "" "kube-system" -}}
      {{- fail (printf "%s.enabled is true, and the cluster has no kind %s (monitoring.coreos.com/v1): install the operator of Prometheus first, or set %s.enabled=false." $value $kind $value) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- $settings := include "bowline.settings" . | fromYaml -}}
{{- if .Values.additionalClouds }}{{ include "bowline.checkClouds" (dict "root" . "settings" $settings) }}{{ end -}}
{{- $instead := dict "bind-address" "bindAddress" "secure-port" "securePort" "use-service-account-credentials" "useServiceAccountCredentials" "cloud-provider" "cloud and additionalClouds" -}}
{{- range $name, $value := .Values.flags -}}
  {{- with index $instead (replace "_" "-" $name) -}}
    {{- fail (printf "flags.%s would contradict what else is rendered: set %s instead." $name .) -}}
  {{- end -}}
{{- end -}}
{{- /* What flags have their own values for, and the values that are given. */}}
{{- $given := dict -}}
{{- with .Values.cluster.name }}{{ $_ := set $given "cluster-name" (list "cluster.name" .) }}{{ end -}}
{{- with .Values.enabledControllers }}{{ $_ := set $given "controllers" (list "enabledControllers" (join "," .)) }}{{ end -}}
{{- if not (kindIs "invalid" .Values.logVerbosityLevel) }}{{ $_ := set $given "v" (list "logVerbosityLevel" (int .Values.logVerbosityLevel | toString)) }}{{ end -}}
{{- $elects := include "bowline.flag" (dict "root" . "name" "leader-elect") | default "true" -}}
{{- range $flag, $value := .Values.flags -}}
  {{- $name := replace "_" "-" $flag -}}
  {{- $text := include "bowline.text" $value -}}
  {{- with index $given $name -}}
    {{- if ne $text (last .) -}}
      {{- fail (printf "flags.%s is %s, and %s is %s: leave the flag out." $flag $text (first .) (last .)) -}}
    {{- end -}}
  {{- end -}}
  {{- $_ := set $given $name (list (printf "flags.%s" $flag) $text) -}}
{{- end -}}
{{- range $flag := include "bowline.extraFlags" . | fromYamlArray -}}
  {{- with and $isStrict (not $flag.name) $flag.text -}}
    {{- fail (printf "controllerExtraArgs has the word %q, which is neither a flag nor the value of one: write --flag=value." .) -}}
  {{- end -}}
  {{- with and $isStrict (index $instead $flag.name) -}}
    {{- fail (printf "--%s in controllerExtraArgs would contradict what else is rendered: set %s instead." $flag.name .) -}}
  {{- end -}}
  {{- with and $isStrict (index $given $flag.name) -}}
    {{- if ne $flag.text (last .) -}}
      {{- fail (printf "--%s in controllerExtraArgs is %s, and %s is %s: leave one of them out." $flag.name $flag.text (first .) (last .)) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if $isStrict }}{{ include "bowline.checkCredentials" (dict "root" . "settings" $settings) }}{{ end -}}
{{- if and (eq $settings.kind "Deployment") (has (lower $elects) (list "false" "f" "0")) (gt (int .Values.replicas) 1) -}}
  {{- fail (printf "replicas is %d, and leader-elect is false: several managers would do the same work side by side. Leave leader-elect out, or set replicas=1." (int .Values.replicas)) -}}
{{- end -}}
{{- range ternary (.Values.extraEnv | default list) list $isStrict -}}
  {{- if and (eq .name "CLUSTER_NAME") (eq $cloud "openstack") $.Values.cluster.name (ne (.value | default "") ($.Values.cluster.name | default "")) -}}
    {{- fail (printf "extraEnv has CLUSTER_NAME, and cluster.name is %s: leave the variable out." $.Values.cluster.name) -}}
  {{- end -}}
  {{- if and (eq .name ($settings.secret.variable | default "")) $.Values.accessToken -}}
    {{- fail (printf "extraEnv has %s, and accessToken is given: leave one of them out." .name) -}}
  {{- end -}}
{{- end -}}
{{- if and .Values.rbac.legacy (not .Values.rbac.create) -}}
  {{- fail "rbac.legacy is true, and rbac.create is false, which makes no roles: leave one of them out." -}}
{{- end -}}
{{- $type := dig "type" "RollingUpdate" ($settings.strategy | default dict) -}}
{{- $types := ternary (list "RollingUpdate" "OnDelete") (list "RollingUpdate" "Recreate") (eq $settings.kind "DaemonSet") -}}
{{- if not (has $type $types) -}}
  {{- fail (printf "strategy.type is %v, and kind is %s: give %s." $type $settings.kind (join " or " $types)) -}}
{{- end -}}
{{- if and (eq $settings.kind "DaemonSet") (not (kindIs "invalid" .Values.replicas)) -}}
  {{- fail "replicas is for a Deployment: leave it out, or set kind=Deployment." -}}
{{- end -}}
{{- if and (eq $settings.kind "DaemonSet") .Values.podDisruptionBudget.enabled -}}
  {{- fail "podDisruptionBudget is for a Deployment: the eviction of pods leaves those of a DaemonSet alone." -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled $settings.hostNetwork -}}
  {{- fail "networkPolicy has no effect on a pod in the host's network: set hostNetwork=false, or leave it out and close the port in the nodes' firewall." -}}
{{- end -}}
{{- if and (eq $settings.loopback true) .Values.podMonitor.enabled -}}
  {{- fail (printf "podMonitor cannot reach bindAddress=%s: leave bindAddress out." $settings.bindAddress) -}}
{{- end -}}
{{- if and (eq $settings.loopback true) (not $settings.hostNetwork) -}}
  {{- fail (printf "The node's probes cannot reach bindAddress=%s in a pod with a network of its own: leave bindAddress out, or set hostNetwork=true." $settings.bindAddress) -}}
{{- end -}}
{{- end }}

{{/* The flags that are given, from `flags` and then from the words that are added. */}}
{{- define "bowline.flags" -}}
{{- $all := list -}}
{{- range $flag, $value := .Values.flags }}{{ $all = append $all (dict "name" (replace "_" "-" $flag) "text" (include "bowline.text" $value)) }}{{ end -}}
{{- toYaml (concat $all (include "bowline.extraFlags" . | fromYamlArray)) -}}
{{- end }}

{{/* The value of one of them; empty if it is not given. */}}
{{- define "bowline.flag" -}}
{{- $wanted := .name -}}
{{- $found := "" -}}
{{- range include "bowline.flags" .root | fromYamlArray }}{{ if eq .name $wanted }}{{ $found = .text }}{{ end }}{{ end -}}
{{- $found -}}
{{- end }}

{{/* What the Go manager's manifest of this cloud has, with the values that are given in its place. */}}
{{- define "bowline.settings" -}}
{{- if not .Values.cloud -}}
  {{- fail "cloud is not given: set it to cloudscale, phoenixnap, cloudstack or openstack." -}}
{{- end -}}
{{- $settings := .Files.Get (printf "presets/%s.yaml" .Values.cloud) | fromYaml -}}
{{- $_ := set $settings "cloudProvider" ($settings.cloudProvider | default .Values.cloud) -}}
{{- $kind := $settings.kind -}}
{{- range $key := list "kind" "strategy" "terminationGracePeriodSeconds" "hostNetwork" "dnsPolicy" "nodeSelector" "affinity" "tolerations" "resources" "podSecurityContext" -}}
  {{- if hasKey $.Values $key -}}
    {{- $given := index $.Values $key -}}
    {{- if not (kindIs "invalid" $given) }}{{ $_ := set $settings $key $given }}{{ end -}}
  {{- end -}}
{{- end -}}
{{- if and (ne $kind $settings.kind) (not .Values.strategy) -}}
  {{- $_ := set $settings "strategy" (dict "type" "RollingUpdate" "rollingUpdate" (dict "maxSurge" 0 "maxUnavailable" 1)) -}}
{{- end -}}
{{- /* In the host's network a port is taken once on each node: where there is no other node, a surge would never start. */}}
{{- if and .Values.strategy (eq $settings.kind "Deployment") $settings.hostNetwork (eq "RollingUpdate" (dig "type" "RollingUpdate" .Values.strategy)) (not (dig "rollingUpdate" nil .Values.strategy)) -}}
  {{- $_ := set $settings "strategy" (dict "type" "RollingUpdate" "rollingUpdate" (dict "maxSurge" 0 "maxUnavailable" 1)) -}}
{{- end -}}
{{- if .Values.bindAddress -}}
  {{- $_ := set $settings "bindAddress" .Values.bindAddress -}}
{{- else if or .Values.podMonitor.enabled (not $settings.hostNetwork) -}}
  {{- $_ := unset $settings "bindAddress" -}}
{{- end -}}
{{- $address := $settings.bindAddress | default "" -}}
{{- $_ := set $settings "loopback" (or (hasPrefix "127." $address) (eq "::1" $address)) -}}
{{- $_ := set $settings.secret "name" (.Values.secret.name | default $settings.secret.name) -}}
{{- if .Values.cluster.name -}}
  {{- if eq .Values.cloud "openstack" -}}
    {{- $name := list (dict "name" "CLUSTER_NAME" "value" .Values.cluster.name) -}}
    {{- $_ := set $settings "env" (include "bowline.replaced" (dict "base" $settings.env "more" $name "by" "name") | fromYamlArray) -}}
  {{- else -}}
    {{- $_ := set $settings "clusterName" .Values.cluster.name -}}
  {{- end -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end }}

{{/* `base` without the entries whose field `by` an entry of `more` has, and then `more`. */}}
{{- define "bowline.replaced" -}}
{{- $by := .by -}}
{{- $taken := list -}}
{{- range .more }}{{ $taken = append $taken (index . $by) }}{{ end -}}
{{- $all := list -}}
{{- range .base }}{{ if not (has (index . $by) $taken) }}{{ $all = append $all . }}{{ end }}{{ end -}}
{{- toYaml (concat $all (.more | default list)) -}}
{{- end }}

{{/* The command line: the words of `key` in the preset, and after those where the flags are, all flags that values ask for. */}}
{{- define "bowline.words" -}}
{{- $settings := .settings -}}
{{- $words := list -}}
{{- range index $settings .key -}}
  {{- if not (and $.root.Values.additionalClouds (regexMatch "^--cloud-(provider|config)=" .)) }}{{ $words = append $words . }}{{ end -}}
{{- end -}}
{{- if eq .key (ternary "args" "command" (kindIs "slice" $settings.args)) -}}
  {{- if .root.Values.additionalClouds }}{{ $words = concat $words (include "bowline.cloudFlags" . | fromYamlArray) }}{{ end -}}
  {{- with .root.Values -}}
    {{- if $settings.bindAddress }}{{ $words = append $words (printf "--bind-address=%s" $settings.bindAddress) }}{{ end -}}
    {{- if ne (int .securePort) 10258 }}{{ $words = append $words (printf "--secure-port=%d" (int .securePort)) }}{{ end -}}
    {{- if $settings.clusterName }}{{ $words = append $words (printf "--cluster-name=%s" $settings.clusterName) }}{{ end -}}
    {{- if not (kindIs "invalid" .logVerbosityLevel) }}{{ $words = append $words (printf "--v=%d" (int .logVerbosityLevel)) }}{{ end -}}
    {{- if .enabledControllers }}{{ $words = append $words (printf "--controllers=%s" (join "," .enabledControllers)) }}{{ end -}}
    {{- if .useServiceAccountCredentials }}{{ $words = append $words "--use-service-account-credentials=true" }}{{ end -}}
    {{- range $name, $value := .flags }}{{ $words = append $words (printf "--%s=%s" $name (include "bowline.text" $value)) }}{{ end -}}
  {{- end -}}
  {{- $words = concat $words (include "bowline.extra" .root | fromYamlArray) -}}
{{- end -}}
{{- if $words }}{{ toYaml $words }}{{ end -}}
{{- end }}

{{/* The words of controllerExtraArgs: a list, or a text that is one. */}}
{{- define "bowline.extra" -}}
{{- $words := .Values.controllerExtraArgs | default list -}}
{{- if kindIs "string" $words -}}
  {{- $words = tpl $words . | fromYamlArray -}}
  {{- if and $words (first $words | toString | hasPrefix "error ") -}}
    {{- fail (printf "controllerExtraArgs is the text %q, which is no list in YAML: give a list of words, such as {--v=3}." .Values.controllerExtraArgs) -}}
  {{- end -}}
{{- end -}}
{{- toYaml $words -}}
{{- end }}

{{/* The flags among those words, with their values, which stand behind `=` or are the next word; one without a value is a
     switch. A word that belongs to no flag has no name. */}}
{{- define "bowline.extraFlags" -}}
{{- $flags := list -}}
{{- $isOpen := false -}}
{{- range $word := include "bowline.extra" . | fromYamlArray -}}
  {{- $word = toString $word -}}
  {{- if hasPrefix "-" $word -}}
    {{- $isOpen = not (contains "=" $word) -}}
    {{- $name := splitList "=" $word | first | trimAll "-" | replace "_" "-" -}}
    {{- $flags = append $flags (dict "name" $name "text" (ternary "true" (splitn "=" 2 $word)._1 $isOpen)) -}}
  {{- else if $isOpen -}}
    {{- $isOpen = false -}}
    {{- $_ := set (last $flags) "text" $word -}}
  {{- else -}}
    {{- $flags = append $flags (dict "name" "" "text" $word) -}}
  {{- end -}}
{{- end -}}
{{- toYaml $flags -}}
{{- end }}

{{/* A value as text: a whole number without an exponent. */}}
{{- define "bowline.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ printf "%d" (int64 .) }}{{ else }}{{ toString . }}{{ end -}}
{{- end }}
