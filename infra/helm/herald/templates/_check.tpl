{{/* What a schema cannot compare, and what the API server or a service would refuse later. Ends with every problem at once. */}}
{{- define "herald.check" -}}
{{- $found := list -}}
{{- range $check := list "release" "config" "signIn" "extraEnv" "scaling" "routes" "proxy" "resources" "files" "labels" -}}
{{- $found = concat $found (include (print "herald.check." $check) $ | fromYamlArray) -}}
{{- end -}}
{{- with $found -}}
{{- fail (printf "\n\nHerald cannot be installed with these values:\n  %s\n" (join "\n  " .)) -}}
{{- end -}}
{{- end -}}

{{/* Services must be named as DNS labels are. */}}
{{- define "herald.check.release" -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" .Release.Name) }}
- {{ printf "the release's name is %q; accepted: a letter first, then lower-case letters, digits and hyphens, because Services are named by it" .Release.Name | quote }}
{{- end }}
{{- end -}}

{{/* By files/variables.json, which `npm run docs` makes from the services' own schemas. */}}
{{- define "herald.check.config" -}}
{{- $known := .Files.Get "files/variables.json" | fromJson -}}
{{- $texts := dict "nats.storage" (list .Values.nats.storage $known.parts.bootstrap.HERALD_NATS_STORAGE) -}}
{{- range $part := list "gateway" "registry" "dispatch" "analytics" }}
{{- range $name, $value := (get $.Values $part).config }}
{{- $_ := set $texts (printf "%s.config.%s" $part $name) (list (include "herald.text" $value) (get (get $known.parts $part) $name)) }}
{{- end }}
{{- end }}
{{- range $path, $both := $texts }}
{{- $text := index $both 0 }}
{{- $facts := index $both 1 }}
{{- $fits := regexMatch ($facts.pattern | default "") $text }}
{{- with $facts.kind }}
{{- $number := include "herald.number" (dict "text" (lower $text) "units" (get $known.units .)) }}
{{- /* The service rounds to whole milliseconds and bytes. */}}
{{- $fits = and $number (ge (float64 $number) (subf ($facts.min | default 0) 0.5)) (lt (float64 $number) (addf ($facts.max | default 9e15) 0.5)) }}
{{- end }}
{{- if and $text (not $fits) }}
- {{ printf "%s is %q; accepted: %s" $path $text $facts.accepts | quote }}
{{- end }}
{{- end }}
{{- $config := mergeOverwrite (dict "HERALD_ANALYTICS_RETENTION" "90d" "HERALD_ANALYTICS_STATISTICS_RETENTION" "800d") (.Values.analytics.config | default dict) -}}
{{- $opens := include "herald.number" (dict "text" (lower $config.HERALD_ANALYTICS_RETENTION) "units" $known.units.duration) -}}
{{- $rollups := include "herald.number" (dict "text" (lower $config.HERALD_ANALYTICS_STATISTICS_RETENTION) "units" $known.units.duration) -}}
{{- if and $opens $rollups (lt (float64 $rollups) (float64 $opens)) }}
- {{ printf "analytics.config.HERALD_ANALYTICS_STATISTICS_RETENTION is %q, less than HERALD_ANALYTICS_RETENTION, %q; accepted: at least as long" $config.HERALD_ANALYTICS_STATISTICS_RETENTION $config.HERALD_ANALYTICS_RETENTION | quote }}
{{- end }}
{{- end -}}

{{- define "herald.check.signIn" -}}
{{- $given := keys (.Values.gateway.config | default dict) -}}
{{- range concat (.Values.extraEnv | default list) (.Values.gateway.extraEnv | default list) -}}
{{- $given = concat $given (list .name (trimSuffix "_FILE" .name)) -}}
{{- end -}}
{{- $all := list "HERALD_GATEWAY_OIDC_ISSUER" "HERALD_GATEWAY_OIDC_CLIENT_ID" "HERALD_GATEWAY_OIDC_URL" -}}
{{- $some := false -}}
{{- range append $all "HERALD_GATEWAY_OIDC_GROUPS" -}}
{{- if or (has . $given) (has (print . "_FILE") $given) -}}{{- $some = true -}}{{- end -}}
{{- end -}}
{{- range $all }}
{{- if and $some (not (has . $given)) }}
- {{ printf "gateway.config.%s is not set; sign-in needs all of %s" . (join ", " $all) | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "herald.check.extraEnv" -}}
{{- $known := (.Files.Get "files/variables.json" | fromJson).parts -}}
{{- $fixed := "^HERALD_(HOST|PORT|METRICS_PORT|GATEWAY_ADMIN_HOST|GATEWAY_ADMIN_PORT)$" -}}
{{- $lists := dict "services" .Values.extraEnv -}}
{{- range $part := keys $known }}{{ $_ := set $lists $part (get $.Values $part).extraEnv }}{{ end -}}
{{- range $part, $extraEnv := $lists }}
{{- $path := eq $part "services" | ternary "extraEnv" (print $part ".extraEnv") }}
{{- $of := get $known $part | default dict }}
{{- if eq $part "services" }}{{ range $variables := values $known }}{{ $of = merge $of $variables }}{{ end }}{{ end }}
{{- $seen := list }}
{{- range $extraEnv }}
{{- $facts := get $of .name | default dict }}
{{- $isFile := dig (trimSuffix "_FILE" .name) "file" false $of }}
{{- if regexMatch $fixed .name }}
- {{ printf "%s has %s; leave it out: probes, Services and network policies rely on the chart's" $path .name | quote }}
{{- else if regexMatch "^(HTTPS_PROXY(_FILE)?|NO_PROXY)$" (upper .name) }}
- {{ printf "%s has %s; set `proxy` instead, by which network policies let the parts out" $path .name | quote }}
{{- else if and (hasPrefix "HERALD_" .name) (not (or (hasKey $of .name) $isFile)) }}
- {{ printf "%s has %s; accepted: variables of docs/reference/configuration.md that %s read" $path .name (eq $part "services" | ternary "the services" $part) | quote }}
{{- else if and $facts.secret (hasKey . "value") }}
- {{ printf "%s gives %s as a value, which everyone sees who may see the release; take it from a Secret by valueFrom" $path .name | quote }}
{{- else if has .name $seen }}
- {{ printf "%s has %s twice; leave one out" $path .name | quote }}
{{- else if eq (hasKey . "value") (hasKey . "valueFrom") }}
- {{ printf "%s: %s needs either value or valueFrom" $path .name | quote }}
{{- end }}
{{- $seen = append $seen .name }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "herald.check.scaling" -}}
{{- range $part := list "gateway" "dispatch" }}
{{- $values := get $.Values $part }}
{{- with $values.autoscaling }}
{{- if .enabled }}
{{- if gt (int .minReplicas) (int .maxReplicas) }}
- {{ printf "%s.autoscaling.minReplicas is %d, more than maxReplicas, %d" $part (int .minReplicas) (int .maxReplicas) | quote }}
{{- end }}
{{- if not (dig "requests" "cpu" "" ($values.resources | default dict)) }}
- {{ printf "%s.resources.requests.cpu is not set; autoscaling needs it, because it measures percent of it" $part | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "herald.check.routes" -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) }}
- "ingress.hosts is empty; accepted: at least one name, such as push.example.com"
{{- end }}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) }}
- "httpRoute.parentRefs is empty; accepted: at least one Gateway, such as { name: public, namespace: gateways }"
{{- end }}
{{- end -}}

{{- define "herald.check.proxy" -}}
{{- if and .Values.proxy.url .Values.proxy.secret }}
- "proxy.url and proxy.secret are both set; set one of the two"
{{- end }}
{{- end -}}

{{- define "herald.check.resources" -}}
{{- $units := dict "" 1 "n" 1e-9 "u" 1e-6 "m" 1e-3 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 "Ei" 1152921504606846976 -}}
{{- $ferretdb := .Values.database.ferretdb -}}
{{- range $path, $resources := dict "bootstrap" .Values.bootstrap.resources "gateway" .Values.gateway.resources "registry" .Values.registry.resources "dispatch" .Values.dispatch.resources "analytics" .Values.analytics.resources "database.ferretdb" $ferretdb.resources }}
{{- range $name, $request := ($resources).requests }}
{{- $limit := get (($resources).limits | default dict) $name }}
{{- $most := include "herald.number" (dict "text" (toString $limit) "units" $units) }}
{{- if and $most (gt (include "herald.number" (dict "text" (toString $request) "units" $units) | float64) (float64 $most)) }}
- {{ printf "%s.resources.requests.%s is %v, more than its limit, %v" $path $name $request $limit | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "herald.check.files" -}}
{{- range $part := list "bootstrap" "gateway" "registry" "dispatch" "analytics" "ferretdb" }}
{{- $values := get $.Values $part | default dict }}
{{- $own := eq $part "ferretdb" | ternary (list "state") list }}
{{- $volumes := concat ($.Values.pods.volumes | default list) ($values.volumes | default list) }}
{{- $names := $own }}
{{- range $volumes }}
{{- if has .name $names }}
- {{ printf "%s.volumes and pods.volumes have two volumes %q; rename one" $part .name | quote }}
{{- end }}
{{- $names = append $names .name }}
{{- end }}
{{- $paths := eq $part "ferretdb" | ternary (list "/state") list }}
{{- range concat ($.Values.pods.volumeMounts | default list) ($values.volumeMounts | default list) }}
{{- if not (has .name $names) }}
- {{ printf "%s.volumeMounts or pods.volumeMounts names the volume %q, which is not in their volumes" $part .name | quote }}
{{- end }}
{{- if has .mountPath $paths }}
- {{ printf "%s.volumeMounts and pods.volumeMounts mount two volumes at %s" $part .mountPath | quote }}
{{- end }}
{{- $paths = append $paths .mountPath }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "herald.check.labels" -}}
{{- range $path, $labels := dict "pods.labels" .Values.pods.labels "monitoring.labels" (.Values.monitoring).labels }}
{{- range $name := keys ($labels | default dict) | sortAlpha }}
{{- if regexMatch "^(app\\.kubernetes\\.io/(name|instance|component|part-of|version|managed-by)|helm\\.sh/chart)$" $name }}
- {{ printf "%s has %s; leave it out: the chart sets it, and selects pods by it" $path $name | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* A text of a number and a unit, as a number; nothing if it is none. */}}
{{- define "herald.number" -}}
{{- $text := trim .text -}}
{{- $unit := regexFind "[A-Za-z]*$" $text -}}
{{- $number := trimSuffix $unit $text -}}
{{- if and (regexMatch "^[0-9]{1,15}(\\.[0-9]{1,3})? ?$" $number) (hasKey .units $unit) -}}
{{- mulf (trim $number | float64) (get .units $unit) -}}
{{- end -}}
{{- end -}}
