{{/* Labels of Helm, and commonLabels without the labels that the objects have anyway. */}}
{{- define "fleetnet-crds.labels" -}}
{{- $own := dict
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/managed-by" .Release.Service
  "app.kubernetes.io/version" .Chart.AppVersion
  "helm.sh/chart" (printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_")) }}
{{- $all := merge $own .Values.commonLabels }}
{{- range list "app.kubernetes.io/part-of" "fleetnet/crd-revision" "rbac.authorization.k8s.io/aggregate-to-view" }}
{{- $_ := unset $all . }}
{{- end }}
{{- toYaml $all }}
{{- end }}
