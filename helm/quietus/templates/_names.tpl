{{- define "quietus.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "quietus.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/* Labels of an object. Takes {root, component}. */}}
{{- define "quietus.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: quietus
{{ include "quietus.selector" . }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What pods are selected by. Takes {root, component}. */}}
{{- define "quietus.selector" -}}
app.kubernetes.io/name: {{ include "quietus.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "quietus.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{/* Pod Security "restricted", for a container. */}}
{{- define "quietus.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
privileged: false
readOnlyRootFilesystem: true
runAsGroup: 65532
runAsNonRoot: true
runAsUser: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* Pod Security "restricted", for a pod of ours. */}}
{{- define "quietus.podSecurity" -}}
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
runAsGroup: 65532
runAsNonRoot: true
runAsUser: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* Replicas over nodes and zones. Takes {root, component}. */}}
{{- define "quietus.spread" -}}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- include "quietus.selector" . | nindent 6 }}
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- include "quietus.selector" . | nindent 6 }}
{{- end }}

{{- define "quietus.injector.name" -}}
{{ include "quietus.fullname" . }}-injector
{{- end }}

{{- define "quietus.injector.secretName" -}}
{{ .Values.injector.certificates.secretName | default (printf "%s-tls" (include "quietus.injector.name" .)) }}
{{- end }}

{{- define "quietus.gateway.name" -}}
{{ include "quietus.fullname" . }}-gateway
{{- end }}

{{- define "quietus.gateway.account" -}}
{{ .Values.gateway.serviceAccount.name | default (include "quietus.gateway.name" .) }}
{{- end }}
