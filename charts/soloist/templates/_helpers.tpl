{{- /* Labels of an object: (list $ "component"). Pod templates get soloist.selector, since a new version of the chart
     must not restart Redis. */}}
{{- define "soloist.labels" -}}
{{- $root := first . -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{ include "soloist.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: soloist
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{- end }}

{{- define "soloist.selector" -}}
app.kubernetes.io/name: soloist
app.kubernetes.io/instance: {{ (first .).Release.Name }}
app.kubernetes.io/component: {{ last . }}
{{- end }}

{{- /* An image: (list $ .Values.image). */}}
{{- define "soloist.image" -}}
{{- $image := last . -}}
{{ $image.repository }}:{{ $image.tag | default (first .).Chart.AppVersion }}
{{- end }}

{{- /* What all our own pods have. */}}
{{- define "soloist.pod" -}}
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.scheduling.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.scheduling.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.scheduling.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- /* Pod Security "restricted", for a container that runs as the given user. */}}
{{- define "soloist.security" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- /* Namespaces to their service accounts, of workloads and the demo. */}}
{{- define "soloist.workloads" -}}
{{- $all := dict -}}
{{- range .Values.workloads -}}
{{- $_ := set $all .namespace (concat (get $all .namespace | default list) .serviceAccounts | uniq) -}}
{{- end -}}
{{- if .Values.demo.enabled -}}
{{- $own := .Release.Namespace -}}
{{- $_ := set $all $own (append (get $all $own | default list) "city-ids" | uniq) -}}
{{- end -}}
{{- toYaml $all -}}
{{- end }}

{{- /* The store's URL, or nothing if a Secret holds it. */}}
{{- define "soloist.storeURL" -}}
{{- if .Values.redis.enabled -}}
redis://soloist-redis.{{ .Release.Namespace }}.svc:6379
{{- else -}}
{{ .Values.store.url }}
{{- end -}}
{{- end }}

{{- /* Variables with which a container of the sidecar's image finds its store, besides --store. */}}
{{- define "soloist.storeEnv" -}}
{{- if .Values.store.existingSecret.name -}}
- name: SOLOIST_STORE
  valueFrom:
    secretKeyRef:
      name: {{ .Values.store.existingSecret.name }}
      key: {{ .Values.store.existingSecret.key }}
{{ end -}}
- name: SOLOIST_STORE_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ .Values.store.passwordSecret.name }}
      key: password
      optional: true
{{- end }}

{{- /* Flags that all sidecars get, as a map of strings. */}}
{{- define "soloist.conf" -}}
{{- $conf := dict -}}
{{- range $flag, $value := .Values.sidecar.defaults -}}
{{- $_ := set $conf $flag (toString $value) -}}
{{- end -}}
{{- with include "soloist.storeURL" . -}}
{{- $_ := set $conf "store" . -}}
{{- end -}}
{{- /* An append-only file in the pod goes with the pod, but Redis would still say that it has one. */ -}}
{{- $forgets := and .Values.redis.enabled (not .Values.redis.persistence.enabled) -}}
{{- if and $forgets (not (hasKey $conf "delayed-restart")) -}}
{{- $_ := set $conf "delayed-restart" "on" -}}
{{- end -}}
{{- toYaml $conf -}}
{{- end }}

{{- /* Annotations of the check's objects. The policies and the webhook are no hooks, or they would stay after an uninstall.
     The permission to create pods goes as soon as the check is done. */}}
{{- define "soloist.checkHook" -}}
helm.sh/hook: post-install,post-upgrade,post-rollback
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
helm.sh/hook-output-log-policy: hook-failed
{{- end }}
