{{/* Labels of every object. commonLabels never replace the labels that the chart itself needs. */}}
{{- define "fleetnet-member-agent.labels" -}}
{{- $own := dict
  "app.kubernetes.io/name" "member-agent"
  "app.kubernetes.io/part-of" "fleetnet"
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/managed-by" .Release.Service
  "app.kubernetes.io/version" .Chart.AppVersion
  "helm.sh/chart" (printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_")) }}
{{- merge $own .Values.commonLabels | toYaml }}
{{- end }}

{{/* Labels of the pods. Without the version of the chart, so that a new chart alone restarts no pod. */}}
{{- define "fleetnet-member-agent.podLabels" -}}
{{- $own := dict "app.kubernetes.io/name" "member-agent" "app.kubernetes.io/part-of" "fleetnet" }}
{{- merge $own .Values.podLabels .Values.commonLabels | toYaml }}
{{- end }}

{{/* Name of the image, by its digest or by its tag. */}}
{{- define "fleetnet-member-agent.image" -}}
{{- with .Values.image }}
{{- with .registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .repository }}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end }}
{{- end }}

{{/* Mode of the EndpointSlice controller. YAML reads `on` and `off` without quotes as true and false. */}}
{{- define "fleetnet-member-agent.endpointslices" -}}
{{ toString .Values.endpointslices.mode | replace "true" "on" | replace "false" "off" }}
{{- end }}

{{/* Arguments of the agent. Settings without a value have the default of the agent. */}}
{{- define "fleetnet-member-agent.args" -}}
- --leader-election-namespace={{ .Release.Namespace }}
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
- --fleet-system-namespace={{ .Release.Namespace }}
- --hub-token-secret={{ .Release.Namespace }}/{{ .Values.hub.existingSecret }}
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
