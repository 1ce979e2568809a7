{{/* Labels of every object. commonLabels never replace the labels that the chart itself needs. */}}
{{- define "fleetnet-hub-agent.labels" -}}
{{- $own := dict
  "app.kubernetes.io/name" "hub-agent"
  "app.kubernetes.io/part-of" "fleetnet"
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/managed-by" .Release.Service
  "app.kubernetes.io/version" .Chart.AppVersion
  "helm.sh/chart" (printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_")) }}
{{- merge $own .Values.commonLabels | toYaml }}
{{- end }}

{{/* Labels of the objects for a member: those of every object, with the name of the agent that uses them. */}}
{{- define "fleetnet-hub-agent.memberLabels" -}}
{{- merge (dict "app.kubernetes.io/name" "member-agent") (include "fleetnet-hub-agent.labels" . | fromYaml) | toYaml }}
{{- end }}

{{/* Labels of the pods. Without the version of the chart, so that a new chart alone restarts no pod. */}}
{{- define "fleetnet-hub-agent.podLabels" -}}
{{- $own := dict "app.kubernetes.io/name" "hub-agent" "app.kubernetes.io/part-of" "fleetnet" }}
{{- merge $own .Values.podLabels .Values.commonLabels | toYaml }}
{{- end }}

{{/* Name of the image, by its digest or by its tag. */}}
{{- define "fleetnet-hub-agent.image" -}}
{{- with .Values.image }}
{{- with .registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .repository }}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end }}
{{- end }}

{{/* Use of the annotations on namespaces. YAML reads `off` without quotes as false. */}}
{{- define "fleetnet-hub-agent.namespacePolicy" -}}
{{ toString .Values.namespacePolicy | replace "false" "off" }}
{{- end }}

{{/* Arguments of the agent. Settings without a value have the default of the agent. */}}
{{- define "fleetnet-hub-agent.args" -}}
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
- --metrics-bind-address=:8080
- --health-probe-bind-address=:8081
- --namespace-policy={{ include "fleetnet-hub-agent.namespacePolicy" . }}
{{- if .Values.metrics.secure }}
- --metrics-secure=true
{{- if .Values.metrics.certificateSecret }}
- --metrics-cert-path=/metrics-certificate
{{- end }}
{{- end }}
{{- with .Values.sliceStream }}
{{- if .enabled }}
- --slice-stream-bind-address=:8443
- --slice-stream-advertise-address={{ required "sliceStream.enabled needs sliceStream.advertiseAddress, the address at which the members reach the Service hub-agent-slice-stream, such as hub.example.com:8443" .advertiseAddress }}
{{- if .certificateSecret }}
- --slice-stream-cert-path=/slice-stream-certificate
{{- end }}
{{- with .objectLag }}
- --object-lag={{ . }}
{{- end }}
{{- end }}
{{- end }}
- --log-format={{ .Values.log.format }}
- --v={{ .Values.log.level }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}
