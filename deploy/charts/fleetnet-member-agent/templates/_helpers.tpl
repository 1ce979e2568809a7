{{/* Name of the agent: the label app.kubernetes.io/name, which is also the label `job` of its metrics. */}}
{{- define "fleetnet-member-agent.name" -}}
{{ .Values.nameOverride | default "member-agent" }}
{{- end }}

{{/* Name of the Deployment and of the other objects in the agent's namespace. */}}
{{- define "fleetnet-member-agent.fullname" -}}
{{ .Values.fullnameOverride | default (include "fleetnet-member-agent.name" .) }}
{{- end }}

{{/* Namespace of the agent. */}}
{{- define "fleetnet-member-agent.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{- define "fleetnet-member-agent.serviceAccountName" -}}
{{ .Values.serviceAccount.name | default (include "fleetnet-member-agent.fullname" .) }}
{{- end }}

{{/* Name of an object that may exist once in a cluster. With another name of the agent, it begins with that name. */}}
{{- define "fleetnet-member-agent.clusterName" -}}
{{- $root := index . 0 }}
{{- if or $root.Values.nameOverride $root.Values.fullnameOverride }}
{{- include "fleetnet-member-agent.fullname" $root }}{{ index . 1 | trimPrefix "fleetnet-member-agent" | trimPrefix "fleetnet" }}
{{- else }}
{{- index . 1 }}
{{- end }}
{{- end }}

{{/* Labels that select the pods. A selector of a Deployment never changes, so only other names add the release to it. */}}
{{- define "fleetnet-member-agent.selectorLabels" -}}
app.kubernetes.io/name: {{ include "fleetnet-member-agent.name" . }}
{{- if or .Values.nameOverride .Values.fullnameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- end }}

{{/* Labels that say which agent this is. With another name, the component is the agent. */}}
{{- define "fleetnet-member-agent.agentLabels" -}}
app.kubernetes.io/name: {{ include "fleetnet-member-agent.name" . }}
app.kubernetes.io/part-of: fleetnet
{{- if or .Values.nameOverride .Values.fullnameOverride }}
app.kubernetes.io/component: member-agent
{{- end }}
{{- end }}

{{/* Labels of every object. commonLabels never replace the labels that the chart itself needs. */}}
{{- define "fleetnet-member-agent.labels" -}}
{{- $own := dict
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/managed-by" .Release.Service
  "app.kubernetes.io/version" .Chart.AppVersion
  "helm.sh/chart" (printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_")) }}
{{- merge $own (include "fleetnet-member-agent.agentLabels" . | fromYaml) .Values.commonLabels | toYaml }}
{{- end }}

{{/* Labels of the pods. Without the version of the chart, so that a new chart alone restarts no pod. */}}
{{- define "fleetnet-member-agent.podLabels" -}}
{{- $own := merge (include "fleetnet-member-agent.agentLabels" . | fromYaml) (include "fleetnet-member-agent.selectorLabels" . | fromYaml) }}
{{- merge $own .Values.podLabels .Values.commonLabels | toYaml }}
{{- end }}

{{/* Labels of the objects of `helm test`. No selector of the agent selects the pod of the test. */}}
{{- define "fleetnet-member-agent.testLabels" -}}
{{- merge (dict "app.kubernetes.io/name" (printf "%s-test" (include "fleetnet-member-agent.name" .))) (include "fleetnet-member-agent.labels" . | fromYaml) | toYaml }}
{{- end }}

{{/*
Name of the image, by its digest or by its tag. The repository may have a registry as its first part. Otherwise, the registry is
required, because no registry has images of fleetnet yet.
*/}}
{{- define "fleetnet-member-agent.image" -}}
{{- $registry := (.Values.global).imageRegistry | default .Values.image.registry }}
{{- $first := regexFind "^[^/]+/" .Values.image.repository }}
{{- if not (or $registry (regexMatch "[.:]" $first)) }}
{{- fail "image.registry is missing: set it to the registry to which you pushed the images of fleetnet, such as registry.example.com/fleetnet (docs/how-to/install.md). For images that you loaded into the nodes, as with `kind load`, set it to docker.io/library" }}
{{- end }}
{{- with $registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ default .Chart.AppVersion .Values.image.tag }}{{ end }}
{{- end }}

{{/* Secrets for the registry: those of `global`, as names or as objects, and those of the chart. */}}
{{- define "fleetnet-member-agent.imagePullSecrets" -}}
{{- $secrets := list }}
{{- range (.Values.global).imagePullSecrets }}
{{- $secrets = append $secrets (kindIs "string" . | ternary (dict "name" .) .) }}
{{- end }}
{{- with concat $secrets .Values.imagePullSecrets | uniq }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* Spread of the pods. A constraint without a selector gets that of the pods. */}}
{{- define "fleetnet-member-agent.topologySpreadConstraints" -}}
{{- $selector := dict "labelSelector" (dict "matchLabels" (include "fleetnet-member-agent.selectorLabels" . | fromYaml)) }}
{{- range .Values.topologySpreadConstraints }}
- {{ hasKey . "labelSelector" | ternary . (merge $selector .) | toYaml | nindent 2 | trim }}
{{- end }}
{{- end }}

{{/* Whether the admission policies are rendered. */}}
{{- define "fleetnet-member-agent.hasPolicies" -}}
{{- if and .Values.admissionPolicy.enabled (semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version) }}true{{ end }}
{{- end }}

{{/* Mode of the EndpointSlice controller. Its rights are wide, so without the admission policies the default is off. YAML reads
     `on` and `off` without quotes as true and false. */}}
{{- define "fleetnet-member-agent.endpointslices" -}}
{{- $default := ternary "auto" "off" (include "fleetnet-member-agent.hasPolicies" . | eq "true") }}
{{- toString .Values.endpointslices.mode | replace "true" "on" | replace "false" "off" | default $default }}
{{- end }}

{{/* Arguments of the agent. Settings without a value have the default of the agent. */}}
{{- define "fleetnet-member-agent.args" -}}
- --leader-election-namespace={{ include "fleetnet-member-agent.namespace" . }}
{{- with .Values.leaderElection }}
{{- with .leaseDuration }}
- --leader-election-lease-duration={{ . }}
{{- end }}
{{- with .renewDeadline }}
- --leader-election-renew-deadline={{ . }}
{{- end }}
{{- with .retryPeriod }}
- --leader-election-retry-period={{ . }}
{{- end }}
{{- end }}
- --fleet-system-namespace={{ include "fleetnet-member-agent.namespace" . }}
- --hub-token-secret={{ include "fleetnet-member-agent.namespace" . }}/{{ .Values.hub.existingSecret }}
- --hub-metrics-bind-address=:8080
- --hub-health-probe-bind-address=:8081
- --member-metrics-bind-address=:8080
- --member-health-probe-bind-address=:8081
- --metrics-bind-address=:8080
- --health-probe-bind-address=:8081
- --endpointslices={{ include "fleetnet-member-agent.endpointslices" . }}
{{- with .Values.endpointslices.takeoverAfter }}
- --endpointslices-takeover-after={{ . }}
{{- end }}
{{- range $cluster, $ranges := .Values.sourceRanges }}
- --source-ranges={{ $cluster }}={{ join "," $ranges }}
{{- end }}
{{- with toString .Values.loadBalancersPerNamespace }}
- --load-balancers-per-namespace={{ . }}
{{- end }}
{{- if .Values.multiclusterApi.enabled }}
- --multicluster-api=true
- --multicluster-api-import={{ .Values.multiclusterApi.import }}
{{- end }}
{{- if .Values.clusterSelection.enabled }}
- --cluster-selection=true
{{- range $name, $value := .Values.clusterSelection.properties }}
- {{ printf "--cluster-property=%s=%s" $name $value | quote }}
{{- end }}
{{- end }}
{{- if .Values.metrics.secure }}
- --metrics-secure=true
{{- if .Values.metrics.certificateSecret }}
- --metrics-cert-path=/metrics-certificate
{{- end }}
{{- end }}
- --log-format={{ .Values.log.format }}
- --v={{ .Values.log.level }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Environment of the agent: its cluster id, and the hub's address and credentials. */}}
{{- define "fleetnet-member-agent.env" -}}
- {name: MEMBER_CLUSTER_NAME, value: {{ .Values.member.id | quote }}}
- {name: CONFIG_PATH, value: /hub/token}
# A container that starts again after a crash leads at once.
- name: POD_UID
  valueFrom: {fieldRef: {fieldPath: metadata.uid}}
- name: HUB_SERVER_URL
{{- with .Values.hub.url }}
  value: {{ . | quote }}
{{- else }}
  valueFrom: {secretKeyRef: {name: {{ .Values.hub.existingSecret }}, key: url}}
{{- end }}
- name: HUB_CERTIFICATE_AUTHORITY
{{- with .Values.hub.caBundle }}
  value: {{ . | quote }}
{{- else }}
  valueFrom: {secretKeyRef: {name: {{ .Values.hub.existingSecret }}, key: certificate-authority}}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Endpoint of a monitor of the Prometheus Operator. The list has the root, the values of the monitor, and their name. */}}
{{- define "fleetnet-member-agent.endpoint" -}}
{{- $root := index . 0 }}
{{- $monitor := index . 1 }}
{{- $name := index . 2 }}
- port: metrics
  path: /metrics
  {{- if $root.Values.metrics.secure }}
  scheme: https
  {{- with $monitor.tlsConfig }}
  tlsConfig: {{- toYaml . | nindent 4 }}
  {{- else }}
  {{- if not $root.Values.metrics.certificateSecret }}
  {{- if $monitor.authorization }}
  {{- fail (printf "%s.authorization needs %s.tlsConfig or metrics.certificateSecret: otherwise Prometheus sends its token to a server that it does not check" $name $name) }}
  {{- end }}
  tlsConfig: {insecureSkipVerify: true}
  {{- end }}
  {{- end }}
  {{- with $monitor.authorization }}
  authorization: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  interval: {{ $monitor.interval }}
  scrapeTimeout: {{ $monitor.scrapeTimeout }}
  relabelings:
    # The dashboards know the members by the label `member`.
    - {targetLabel: member, replacement: {{ $root.Values.member.id | quote }}}
    {{- with $monitor.relabelings }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $monitor.metricRelabelings }}
  metricRelabelings: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* Alerts and recording rules, as the values change them. The texts of alerts have templates of Prometheus, and are no templates here. */}}
{{- define "fleetnet-member-agent.rules" -}}
{{- $values := .Values.prometheusRule }}
{{- $runbook := include "fleetnet-member-agent.runbook" (list . "prometheusRule") }}
{{- $text := .Files.Get "files/rules.yaml" | replace "docs/runbook/" (printf "%s/" $runbook) }}
{{- $text = $text | replace "job=\"member-agent\"" (printf "job=%q" (include "fleetnet-member-agent.name" .)) }}
{{- $groups := list }}
{{- $known := list }}
{{- range (fromYaml $text).groups }}
{{- $rules := list }}
{{- range $rule := .rules }}
{{- $change := dict }}
{{- if $rule.alert }}
{{- $known = append $known $rule.alert }}
{{- $change = index $values.alerts $rule.alert | default dict }}
{{- if and $change.expr $rule.labels.window }}
{{- fail (printf "prometheusRule.alerts.%s.expr: the alert has a rule for each window, so one expression cannot replace them" $rule.alert) }}
{{- end }}
{{- $labels := dict }}
{{- with $change.severity }}
{{- $_ := set $labels "severity" . }}
{{- end }}
{{- $labels = merge $labels (deepCopy ($change.labels | default dict)) (deepCopy $values.ruleLabels) $rule.labels }}
{{- $annotations := merge (deepCopy ($change.annotations | default dict)) $rule.annotations }}
{{- $rule = merge (dict "labels" $labels "annotations" $annotations) (pick $change "expr" "for" "keep_firing_for") $rule }}
{{- end }}
{{- if ne (toString $change.enabled) "false" }}
{{- $rules = append $rules $rule }}
{{- end }}
{{- end }}
{{- $groups = append $groups (dict "name" .name "rules" $rules) }}
{{- end }}
{{- range $name, $_ := $values.alerts }}
{{- if not (has $name $known) }}
{{- fail (printf "prometheusRule.alerts.%s: there is no such alert in this chart. Its alerts: %s" $name (join ", " ($known | uniq))) }}
{{- end }}
{{- end }}
{{- toYaml (dict "groups" $groups) }}
{{- end }}

{{/* Address of the folder of the runbook. The list has the root and the name of the value that needs it. */}}
{{- define "fleetnet-member-agent.runbook" -}}
{{- $root := index . 0 }}
{{- $home := "" }}
{{- with $root.Chart.Home }}
{{- $home = printf "%s/blob/v%s/docs/runbook" . $root.Chart.AppVersion }}
{{- end }}
{{- $url := $root.Values.prometheusRule.runbookURL | default $home }}
{{- required (printf "%s.enabled needs prometheusRule.runbookURL, the address of the folder docs/runbook of fleetnet in your copy, such as https://git.example.com/fleetnet/docs/runbook: alerts and panels link to its pages, and fleetnet has no public address yet" (index . 1)) $url | trimSuffix "/" }}
{{- end }}
