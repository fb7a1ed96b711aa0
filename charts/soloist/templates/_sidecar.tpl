{{- /* The sidecar container, for a pod template that is written by hand:

       initContainers:
         - {{- include "soloist.sidecar" (dict "root" $ "lock" "city-ids") | nindent 10 }}
       containers:
         - name: app
           env: {{- include "soloist.env" $ | nindent 12 }}

     It must be the first init container. More keys: config, a map of flags to values; volumeMounts, for the files that
     flags name. A chart that has this one as a dependency passes $.Subcharts.soloist as root. With
     config.readiness-gate=true the pod needs the readiness gate soloist.dev/leader, too. */}}
{{- define "soloist.sidecar" -}}
{{- $root := .root -}}
{{- $flags := fromYamlArray (include "soloist.flags" $root) -}}
{{- $conf := fromYaml (include "soloist.conf" $root) -}}
{{- range $flag, $value := .config | default dict -}}
{{- if not (has $flag $flags) -}}
{{- fail (printf "soloist.sidecar: unknown flag %s in config; known: %s" $flag (join ", " $flags)) -}}
{{- end -}}
{{- $_ := set $conf $flag (toString $value) -}}
{{- end -}}
{{- if ne (toString (get $conf "jobs-only")) "true" -}}
{{- $_ := set $conf "lock" (required "soloist.sidecar: lock is required: the name of the lock" .lock) -}}
{{- end -}}
{{- $args := list "elect" -}}
{{- range $flags -}}
{{- if hasKey $conf . -}}
{{- $args = append $args (printf "--%s=%s" . (get $conf .)) -}}
{{- end -}}
{{- end -}}
{{- $container := fromYaml (include "soloist.container" $root) -}}
{{- $_ := set $container "args" $args -}}
{{- if and (eq (get $conf "on-lost") "exit") (semverCompare ">=1.36-0" $root.Capabilities.KubeVersion.Version) -}}
{{- $_ := set $container "restartPolicyRules" (fromYamlArray (include "soloist.restartRules" $root)) -}}
{{- end -}}
{{- with .volumeMounts -}}
{{- $_ := set $container "volumeMounts" . -}}
{{- end -}}
{{- toYaml $container -}}
{{- end }}

{{- /* Variables for the app's containers, with the names that contrib's and NAIS's electors made known. */}}
{{- define "soloist.env" -}}
- name: SOLOIST_URL
  value: http://localhost:4040
- name: ELECTOR_PATH
  value: localhost:4040
- name: ELECTOR_GET_URL
  value: http://localhost:4040/
- name: ELECTOR_SSE_URL
  value: http://localhost:4040/sse
{{- end }}

{{- /* Every flag of "sidecar elect" but --name, in the order of the arguments. */}}
{{- define "soloist.flags" -}}
- lock
- store
- slots
- lease-duration
- renew-deadline
- retry-period
- store-username
- store-password-file
- tls-ca-file
- tls-cert-file
- tls-key-file
- tls-server-name
- key-prefix
- store-check
- delayed-restart
- http-address
- probe-address
- readiness
- max-locks
- dapr-address
- jobs-only
- app-health-url
- app-health-period
- app-health-timeout
- app-health-failures
- require-heartbeat
- drain-timeout
- on-lost
- annotate
- fast-failover
- termination-message-path
- readiness-gate
- log-level
- log-format
{{- end }}

{{- /* A loss of the lock (exit code 42) restarts all containers of the pod. */}}
{{- define "soloist.restartRules" -}}
- action: RestartAllContainers
  exitCodes:
    operator: In
    values: [42]
{{- end }}

{{- /* The container without what depends on flags. */}}
{{- define "soloist.container" -}}
name: soloist
image: {{ include "soloist.image" (list . .Values.image) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
restartPolicy: Always
env:
  - name: POD_NAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  - name: POD_NAMESPACE
    valueFrom:
      fieldRef:
        fieldPath: metadata.namespace
  - name: POD_UID
    valueFrom:
      fieldRef:
        fieldPath: metadata.uid
  - name: NODE_NAME
    valueFrom:
      fieldRef:
        fieldPath: spec.nodeName
  {{- include "soloist.storeEnv" . | nindent 2 }}
ports:
  - name: soloist-probe
    containerPort: 4041
lifecycle:
  postStart:
    exec:
      command: [/sidecar, wait, --timeout=30s]
  preStop:
    exec:
      command: [/sidecar, drain]
readinessProbe:
  httpGet:
    path: /readyz
    port: 4041
  periodSeconds: 2
livenessProbe:
  httpGet:
    path: /livez
    port: 4041
  periodSeconds: 5
  failureThreshold: 3
resources: {{- toYaml .Values.sidecar.resources | nindent 2 }}
securityContext: {{- include "soloist.security" 65532 | nindent 2 }}
{{- end }}
