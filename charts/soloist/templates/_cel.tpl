{{- /* A value as CEL. JSON's strings are CEL's; dyn lets values of several types stand in one map. */}}
{{- define "soloist.cel" -}}
{{- if kindIs "map" . -}}
dyn({
{{- $value := . -}}
{{- range $i, $key := keys . | sortAlpha -}}
{{- if $i }}, {{ end }}{{ toJson $key }}: {{ include "soloist.cel" (get $value $key) }}
{{- end -}}
})
{{- else if and (kindIs "slice" .) (kindIs "map" (first .)) -}}
dyn([
{{- range $i, $item := . -}}
{{- if $i }},{{ end }}
    {{ include "soloist.cel" $item }}
{{- end -}}
])
{{- else if kindIs "slice" . -}}
dyn({{ toJson . }})
{{- else -}}
dyn({{ toJson . }})
{{- end -}}
{{- end }}

{{- /* The sidecar container as CEL. */}}
{{- define "soloist.celContainer" -}}
{
{{- range $key, $value := fromYaml (include "soloist.container" .) }}
  {{ toJson $key }}: {{ include "soloist.cel" $value }},
{{- end }}
  "args": dyn(variables.args),
  ?"restartPolicyRules": variables.exits
    ? optional.of({{ include "soloist.cel" (fromYamlArray (include "soloist.restartRules" .)) }})
    : optional.none()
}
{{- end }}

{{- /* A map of strings as CEL, an entry to a line. */}}
{{- define "soloist.celMap" -}}
{
{{- $map := . -}}
{{- range $i, $key := keys . | sortAlpha -}}
{{- if $i }},{{ end }}
  {{ toJson $key }}: {{ toJson (get $map $key) }}
{{- end }}
}
{{- end }}

{{- /* Pods that are created anywhere but in kube-system. */}}
{{- define "soloist.newPods" -}}
matchConstraints:
  namespaceSelector:
    matchExpressions:
      - {key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}
  resourceRules:
    - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE], scope: Namespaced}
{{- end }}
