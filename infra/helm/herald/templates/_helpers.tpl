{{/* Every object is named by the release: `herald-gateway`. */}}
{{- define "herald.name" -}}
{{- printf "%s-%s" (.root.Release.Name | trunc 40 | trimSuffix "-") .part -}}
{{- end -}}

{{/* The labels that select the pods of a part. They never change, as a Deployment's selector cannot. */}}
{{- define "herald.selector" -}}
app.kubernetes.io/name: herald
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "herald.labels" -}}
{{ include "herald.selector" . }}
app.kubernetes.io/part-of: herald
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "herald.metadata" -}}
name: {{ include "herald.name" . }}
labels: {{- include "herald.labels" . | nindent 2 }}
{{- end -}}

{{- define "herald.image" -}}
{{- $images := .root.Values.images -}}
{{- $digest := (get $images .image).digest -}}
{{- $base := printf "%s/%s" $images.repository .image -}}
{{- if $digest }}{{ $base }}@{{ $digest }}{{ else }}{{ $base }}:{{ $images.tag | default .root.Chart.AppVersion }}{{ end -}}
{{- end -}}

{{/* What the chart knows of each part. Secrets: the variable, which Secret in `secrets`, and its key. */}}
{{- define "herald.parts" -}}
bootstrap:
  secrets: [[HERALD_NATS_PASSWORD, bootstrap, nats-password]]
gateway:
  port: 8080
  metrics: 9080
  secrets:
    - [HERALD_NATS_PASSWORD, gateway, nats-password]
    - [HERALD_ADMIN_TOKEN, gateway, admin-token]
    - [HERALD_OPEN_KEYS, openKeys, open-keys]
registry:
  port: 8081
  metrics: 9081
  secrets:
    - [HERALD_NATS_PASSWORD, registry, nats-password]
    - [HERALD_MONGO_URL, registry, mongo-url]
    - [HERALD_REGISTRY_MASTER_KEYS, registry, master-keys]
dispatch:
  port: 8082
  metrics: 9082
  secrets:
    - [HERALD_NATS_PASSWORD, dispatch, nats-password]
    - [HERALD_MONGO_URL, dispatch, mongo-url]
    - [HERALD_DISPATCH_MASTER_KEYS, dispatch, master-keys]
    - [HERALD_OPEN_KEYS, openKeys, open-keys]
analytics:
  port: 8083
  metrics: 9083
  secrets:
    - [HERALD_NATS_PASSWORD, analytics, nats-password]
    - [HERALD_MONGO_URL, analytics, mongo-url]
    - [HERALD_ANALYTICS_MASTER_KEYS, analytics, master-keys]
{{- end -}}

{{/* The variables of a container, inline, so that a changed value replaces the pods, and the bootstrap hook needs no ConfigMap before it. */}}
{{- define "herald.env" -}}
{{- $replaced := include "herald.replaced" . | fromYamlArray -}}
{{- range include "herald.ownEnv" . | fromYamlArray }}
{{- if not (has .name $replaced) }}
- {{ toJson . }}
{{- end }}
{{- end }}
{{- range .extraEnv }}
- {{ toJson . }}
{{- end }}
{{- end -}}

{{/* The variables that `extraEnv` replaces: with the same name, from a file, or by another way to log in at the broker. */}}
{{- define "herald.replaced" -}}
{{- $names := list "" -}}
{{- range .extraEnv }}
{{- $names = concat $names (list .name (trimSuffix "_FILE" .name)) }}
{{- if regexMatch "^HERALD_NATS_(CREDS_FILE|NKEY_SEED(_FILE)?)$" .name }}
{{- $names = concat $names (list "HERALD_NATS_USER" "HERALD_NATS_PASSWORD") }}
{{- end }}
{{- end }}
{{- toYaml $names }}
{{- end -}}

{{/* What the chart itself sets. */}}
{{- define "herald.ownEnv" -}}
{{- $values := get .root.Values .part -}}
- { name: HERALD_NATS_URL, value: {{ .root.Values.nats.url | quote }} }
- { name: HERALD_NATS_USER, value: herald-{{ .part }} }
{{- range .facts.secrets }}
- name: {{ index . 0 }}
  valueFrom: { secretKeyRef: { name: {{ get $.root.Values.secrets (index . 1) }}, key: {{ index . 2 }} } }
{{- end }}
{{- if eq .part "bootstrap" }}
- { name: HERALD_NATS_REPLICAS, value: {{ .root.Values.nats.replicas | quote }} }
- { name: HERALD_NATS_STORAGE, value: {{ .root.Values.nats.storage | quote }} }
{{- else }}
- { name: HERALD_HOST, value: "0.0.0.0" }
{{- if eq .part "gateway" }}
# Operators have a port of their own, to which no Ingress leads.
- { name: HERALD_GATEWAY_ADMIN_HOST, value: "0.0.0.0" }
- { name: HERALD_GATEWAY_ADMIN_PORT, value: "8089" }
{{- if include "herald.issuer" .root }}
# Optional, because a provider may give none.
- name: HERALD_GATEWAY_OIDC_CLIENT_SECRET
  valueFrom: { secretKeyRef: { name: {{ .root.Values.secrets.gateway }}, key: oidc-client-secret, optional: true } }
{{- end }}
{{- else }}
- { name: HERALD_DATABASE_PREFIX, value: {{ .root.Values.database.prefix | quote }} }
{{- end }}
{{- if ne .part "registry" }}
{{- include "herald.proxy" .root }}
{{- end }}
{{- include "herald.variables" $values.config }}
{{- include "herald.variables" .root.Values.env }}
{{- end }}
{{- end -}}

{{/* The identity provider's address, if people sign in by one. One from a Secret or a ConfigMap is not known here: https on port 443. */}}
{{- define "herald.issuer" -}}
{{- $name := "HERALD_GATEWAY_OIDC_ISSUER" -}}
{{- $issuer := get (.Values.gateway.config | default dict) $name -}}
{{- range concat (.Values.extraEnv | default list) (.Values.gateway.extraEnv | default list) }}
{{- if has .name (list $name (print $name "_FILE")) }}
{{- $issuer = ternary .value "https://unknown" (and (eq .name $name) (hasKey . "value")) }}
{{- end }}
{{- end }}
{{- $issuer -}}
{{- end -}}

{{/* Of a part that calls servers elsewhere. */}}
{{- define "herald.proxy" -}}
{{- with .Values.proxy }}
{{- if .secret }}
- { name: HTTPS_PROXY, valueFrom: { secretKeyRef: { name: {{ .secret }}, key: https-proxy } } }
{{- else if .url }}
- { name: HTTPS_PROXY, value: {{ .url | quote }} }
{{- end }}
{{- if .noProxy }}
- { name: NO_PROXY, value: {{ .noProxy | quote }} }
{{- end }}
{{- end }}
{{- end -}}

{{/* The port of the proxy: that of its URL, if it is known. */}}
{{- define "herald.proxyPort" -}}
{{- with .Values.proxy -}}
{{- if .url -}}
{{- $url := urlParse .url -}}
{{- regexFind ":[0-9]+$" $url.host | trimPrefix ":" | default (eq $url.scheme "https" | ternary "443" "80") -}}
{{- else -}}
{{- .port -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "herald.variables" -}}
{{- range $name, $value := . }}
- { name: {{ $name }}, value: {{ include "herald.text" $value | quote }} }
{{- end }}
{{- end -}}

{{/* Helm reads whole numbers as floats, and would write a million as 1e+06. */}}
{{- define "herald.text" -}}
{{- and (kindIs "float64" .) (eq . (floor .)) | ternary (int64 . | toString) (toString .) -}}
{{- end -}}

{{/* The fields of a pod's spec that all parts share, the bootstrap Job included. */}}
{{- define "herald.pod" -}}
automountServiceAccountToken: false
# Variables made from the names of Services could be taken for Herald's own.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  # `node` in the image, as a number: the kubelet cannot tell from a name that it is not root.
  runAsUser: 1000
  runAsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- with .root.Values.images.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with concat (.root.Values.pods.volumes | default list) (.volumes | default list) }}
volumes: {{ toJson . }}
{{- end }}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
{{- with get $.root.Values.pods $field }}
{{ $field }}: {{ toJson . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The fields of a container that all parts share. */}}
{{- define "herald.container" -}}
imagePullPolicy: {{ .root.Values.images.pullPolicy }}
resources: {{- toYaml .resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- with concat (.root.Values.pods.volumeMounts | default list) (.mounts | default list) }}
volumeMounts: {{ toJson . }}
{{- end }}
{{- end -}}

{{- define "herald.podMetadata" -}}
labels:
  {{- include "herald.labels" . | nindent 2 }}
  {{- with .root.Values.pods.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .root.Values.pods.annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Losing one zone or one node stops no part. */}}
{{- define "herald.spread" -}}
topologySpreadConstraints:
  {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    # Of one version: pods of the older one are about to go.
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels: {{- include "herald.selector" $ | nindent 8 }}
  {{- end }}
{{- end -}}
