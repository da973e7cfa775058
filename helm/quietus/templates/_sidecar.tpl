{{/*
The sidecar for a pod of one's own chart. In a chart that depends on this one:

  initContainers:
    {{- include "quietus.sidecar.initContainers" .Subcharts.quietus | nindent 8 }}
  containers:
    {{- include "quietus.sidecar.containers" .Subcharts.quietus | nindent 8 }}
  volumes:
    {{- include "quietus.sidecar.volumes" .Subcharts.quietus | nindent 8 }}

with the sidecar's values under `quietus.sidecar`, and `quietus.injector.enabled: false` where the webhook is
not wanted. Exactly one of the first two is not empty. The pod carries the labels of `quietus.sidecar.labels`
and, where keys or a ledger are mounted, the `fsGroup` of `quietus.sidecar.podSecurity`. `quietus inject` puts
the same container into pods (a test holds the two together).
*/}}
{{- define "quietus.sidecar.initContainers" -}}
{{- if .Values.sidecar.native }}
{{- include "quietus.sidecar.container" . }}
{{- end }}
{{- end }}

{{- define "quietus.sidecar.containers" -}}
{{- if not .Values.sidecar.native }}
{{- include "quietus.sidecar.container" . }}
{{- end }}
{{- end }}

{{- define "quietus.sidecar.labels" -}}
quietus.io/injected: "true"
{{- end }}

{{- define "quietus.sidecar.annotations" -}}
quietus.io/status: injected
{{- end }}

{{- define "quietus.sidecar.podSecurity" -}}
{{- if or .Values.sidecar.keysSecret .Values.sidecar.credentialsSecret .Values.sidecar.ledgerPasswordSecret -}}
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
{{- end }}
{{- end }}

{{/* "pod" or "loopback". */}}
{{- define "quietus.sidecar.side" -}}
{{- $s := .Values.sidecar -}}
{{- if $s.listen }}{{ $s.listen }}
{{- else if regexMatch "^(https?://)?(127\\.|localhost([:/]|$)|\\[::1\\])" ($s.upstream | default $s.grpcUpstream) }}pod
{{- else }}loopback
{{- end }}
{{- end }}

{{/* Refuses what would not be safe, or could not run. */}}
{{- define "quietus.sidecar.check" -}}
{{- $s := .Values.sidecar -}}
{{- if not $s.profile }}{{ fail "sidecar.profile: name a profile that ships (quietus profile list), or configmap/NAME/KEY" }}{{ end }}
{{- if not (or $s.upstream $s.grpcUpstream) }}{{ fail "sidecar.upstream: say where the store is, such as http://127.0.0.1:8000, or name sidecar.grpcUpstream" }}{{ end }}
{{- if and (eq $s.ledger "memory") (ne $s.policy "observe") }}
{{- fail "sidecar.ledger: a ledger in memory forgets with the pod who was erased; name claim/NAME, volume/NAME or secret/NAME, or use the policy observe" }}
{{- end }}
{{- if and (ne $s.ledger "memory") (not $s.keysSecret) }}
{{- fail "sidecar.keysSecret: a ledger that is kept needs its keys in a Secret of their own; make one with: quietus inject secret NAME" }}
{{- end }}
{{- end }}

{{- define "quietus.sidecar.document" -}}
{{- if hasPrefix "configmap/" .value -}}
/etc/quietus/{{ .kind }}/{{ index (splitList "/" .value) 2 }}
{{- else -}}
{{ .value }}
{{- end }}
{{- end }}

{{- define "quietus.sidecar.container" -}}
{{- include "quietus.sidecar.check" . }}
{{- $s := .Values.sidecar }}
{{- $side := include "quietus.sidecar.side" . }}
{{- $kind := index (splitList "/" $s.ledger) 0 }}
{{- $name := index (splitList "/" (printf "%s/" $s.ledger)) 1 }}
- name: quietus
  image: {{ include "quietus.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [serve]
  {{- if $s.native }}
  restartPolicy: Always
  {{- end }}
  env:
    - {name: QUIETUS_STORE__NAME, value: {{ $s.store | quote }}}
    - {name: QUIETUS_STORE__PROFILE, value: {{ include "quietus.sidecar.document" (dict "kind" "profile" "value" $s.profile) | quote }}}
    {{- if $s.upstream }}
    - {name: QUIETUS_STORE__HTTP__UPSTREAM, value: {{ $s.upstream | quote }}}
    - {name: QUIETUS_STORE__HTTP__LISTEN, value: {{ printf "%s:%v" (eq $side "pod" | ternary "0.0.0.0" "127.0.0.1") $s.port | quote }}}
    {{- end }}
    {{- if $s.grpcUpstream }}
    - {name: QUIETUS_STORE__GRPC__UPSTREAM, value: {{ $s.grpcUpstream | quote }}}
    - {name: QUIETUS_STORE__GRPC__LISTEN, value: {{ printf "%s:%v" (eq $side "pod" | ternary "0.0.0.0" "127.0.0.1") $s.grpcPort | quote }}}
    {{- end }}
    - {name: QUIETUS_POLICY, value: {{ include "quietus.sidecar.document" (dict "kind" "policy" "value" $s.policy) | quote }}}
    - {name: QUIETUS_ADMIN__LISTEN, value: {{ printf "127.0.0.1:%v" $s.adminPort | quote }}}
    - {name: QUIETUS_HEALTH__LISTEN, value: {{ printf "0.0.0.0:%v" $s.probePort | quote }}}
    - {name: QUIETUS_METRICS__LISTEN, value: {{ printf "0.0.0.0:%v" $s.metricsPort | quote }}}
    - {name: QUIETUS_TIMEOUTS__DRAIN, value: {{ printf "%vs" $s.drainSeconds | quote }}}
    {{- if $s.bypassEvery }}
    - {name: QUIETUS_BYPASS__EVERY, value: {{ $s.bypassEvery | quote }}}
    {{- end }}
    {{- if $s.otlpEndpoint }}
    - {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ $s.otlpEndpoint | quote }}}
    {{- end }}
    {{- if eq $kind "memory" }}
    - {name: QUIETUS_LEDGER__URL, value: "memory:"}
    {{- else if eq $kind "secret" }}
    - name: QUIETUS_LEDGER__URL
      valueFrom: {secretKeyRef: {name: {{ $name | quote }}, key: url}}
    {{- else }}
    - {name: QUIETUS_LEDGER__URL, value: "sqlite:////var/lib/quietus/ledger.db"}
    {{- end }}
    {{- if $s.ledgerPasswordSecret }}
    - {name: QUIETUS_LEDGER__PASSWORD_FILE, value: /var/run/quietus/ledger/password}
    {{- end }}
    {{- if $s.keysSecret }}
    - {name: QUIETUS_KEYS__FILE, value: /var/run/quietus/keys/keys.json}
    - {name: QUIETUS_ADMIN__TOKEN_FILE, value: /var/run/quietus/keys/admin.token}
    {{- end }}
    {{- if $s.credentialsSecret }}
    {{- range $wire := list "HTTP" "GRPC" }}
    {{- if eq $wire "HTTP" | ternary $s.upstream $s.grpcUpstream }}
    {{- /* Names of metadata are lower case in gRPC. */}}
    {{- $header := dict (eq $wire "HTTP" | ternary "Authorization" "authorization") (dict "file" "/var/run/quietus/credentials/authorization") | mustToJson }}
    - {name: QUIETUS_STORE__{{ $wire }}__HEADERS, value: {{ $header | quote }}}
    - {name: QUIETUS_STORE__{{ $wire }}__INJECT_HEADERS, value: {{ $header | quote }}}
    {{- end }}
    {{- end }}
    {{- end }}
  ports:
    {{- if $s.upstream }}
    - {name: quietus-data, containerPort: {{ $s.port }}, protocol: TCP}
    {{- end }}
    {{- if $s.grpcUpstream }}
    - {name: quietus-grpc, containerPort: {{ $s.grpcPort }}, protocol: TCP}
    {{- end }}
    - {name: quietus-probes, containerPort: {{ $s.probePort }}, protocol: TCP}
    - {name: quietus-metrics, containerPort: {{ $s.metricsPort }}, protocol: TCP}
  startupProbe:
    httpGet: {path: /startupz, port: quietus-probes}
    periodSeconds: 1
    timeoutSeconds: 2
    failureThreshold: 300
  livenessProbe:
    httpGet: {path: /healthz, port: quietus-probes}
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 3
  {{- if eq $side "pod" }}
  readinessProbe:
    httpGet: {path: /readyz, port: quietus-probes}
    periodSeconds: 5
    timeoutSeconds: 2
    failureThreshold: 2
  {{- end }}
  resources: {{- toYaml $s.resources | nindent 4 }}
  securityContext: {{- include "quietus.containerSecurity" . | nindent 4 }}
  terminationMessagePolicy: FallbackToLogsOnError
  volumeMounts:
    - {name: quietus-tmp, mountPath: /tmp}
    {{- if eq $kind "claim" }}
    - {name: quietus-ledger, mountPath: /var/lib/quietus}
    {{- else if eq $kind "volume" }}
    - {name: {{ $name | quote }}, mountPath: /var/lib/quietus}
    {{- end }}
    {{- if $s.ledgerPasswordSecret }}
    - {name: quietus-password, mountPath: /var/run/quietus/ledger, readOnly: true}
    {{- end }}
    {{- if $s.keysSecret }}
    - {name: quietus-keys, mountPath: /var/run/quietus/keys, readOnly: true}
    {{- end }}
    {{- if $s.credentialsSecret }}
    - {name: quietus-credentials, mountPath: /var/run/quietus/credentials, readOnly: true}
    {{- end }}
    {{- if hasPrefix "configmap/" $s.profile }}
    - {name: quietus-profile, mountPath: /etc/quietus/profile, readOnly: true}
    {{- end }}
    {{- if hasPrefix "configmap/" $s.policy }}
    - {name: quietus-policy, mountPath: /etc/quietus/policy, readOnly: true}
    {{- end }}
{{- end }}

{{- define "quietus.sidecar.volumes" -}}
{{- $s := .Values.sidecar }}
- {name: quietus-tmp, emptyDir: {medium: Memory, sizeLimit: 16Mi}}
{{- if hasPrefix "claim/" $s.ledger }}
- {name: quietus-ledger, persistentVolumeClaim: {claimName: {{ index (splitList "/" $s.ledger) 1 | quote }}}}
{{- end }}
{{- if $s.ledgerPasswordSecret }}
- {name: quietus-password, secret: {secretName: {{ $s.ledgerPasswordSecret | quote }}, defaultMode: 0440}}
{{- end }}
{{- if $s.keysSecret }}
- {name: quietus-keys, secret: {secretName: {{ $s.keysSecret | quote }}, defaultMode: 0440}}
{{- end }}
{{- if $s.credentialsSecret }}
- {name: quietus-credentials, secret: {secretName: {{ $s.credentialsSecret | quote }}, defaultMode: 0440}}
{{- end }}
{{- if hasPrefix "configmap/" $s.profile }}
- {name: quietus-profile, configMap: {name: {{ index (splitList "/" $s.profile) 1 | quote }}}}
{{- end }}
{{- if hasPrefix "configmap/" $s.policy }}
- {name: quietus-policy, configMap: {name: {{ index (splitList "/" $s.policy) 1 | quote }}}}
{{- end }}
{{- end }}
