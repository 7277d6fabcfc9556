{{/* What several objects have in common. */}}

{{- define "dsched.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What pods are chosen by; never changed, a Deployment's selector is fixed. */}}
{{- define "dsched.selector" -}}
app.kubernetes.io/name: dsched
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "dsched.labels" -}}
app.kubernetes.io/name: dsched
{{ include "dsched.furtherLabels" . }}
{{- end -}}

{{- define "dsched.furtherLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: dsched
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "dsched.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* As --feature-gates takes them. */}}
{{- define "dsched.featureGates" -}}
{{- $gates := list -}}
{{- range $gate, $on := .Values.featureGates -}}
{{- $gates = append $gates (printf "%s=%t" $gate $on) -}}
{{- end -}}
{{- join "," $gates -}}
{{- end -}}

{{/* Who starts dsched's own pods. */}}
{{- define "dsched.startedBy" -}}
{{- .Values.schedulerName | default (ternary "kube-scheduler" "default-scheduler" .Values.insteadOfKubeScheduler) -}}
{{- end -}}

{{/* The KubeSchedulerConfiguration. */}}
{{- define "dsched.configuration" -}}
{{- $named := ternary "default-scheduler" "dsched" .Values.insteadOfKubeScheduler -}}
{{- $kind := dict "apiVersion" "kubescheduler.config.k8s.io/v1" "kind" "KubeSchedulerConfiguration" -}}
{{- $profiles := dict "profiles" (list (dict "schedulerName" $named)) -}}
{{- toYaml (merge (dict) .Values.configuration $kind $profiles) -}}
{{- end -}}

{{- define "dsched.configurationMap" -}}
{{- .Values.existingConfiguration.name | default (printf "%s-scheduler" (include "dsched.name" .)) -}}
{{- end -}}

{{/* The Secret that has Redis' URL. */}}
{{- define "dsched.redisSecret" -}}
{{- $external := and (eq .Values.redis.mode "external") .Values.redis.external.existingSecret -}}
{{- $external | default (printf "%s-redis" (include "dsched.name" .)) -}}
{{- end -}}

{{- define "dsched.redisAuthority" -}}
{{- if and (eq .Values.redis.mode "external") .Values.redis.external.tls -}}true{{- end -}}
{{- end -}}

{{/* Of a pod: what it is chosen by, and what tells people more. */}}
{{- define "dsched.podLabels" -}}
{{ include "dsched.selector" . }}
app.kubernetes.io/part-of: dsched
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- with .Values.pods.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Pods are started anew when something changes that they read only once. */}}
{{- define "dsched.podAnnotations" -}}
checksum/settings: {{ include (print $.Template.BasePath "/settings.yaml") . | sha256sum }}
{{- with .Values.pods.annotations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "dsched.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "dsched.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Of a pod's spec: what all of dsched's pods have before their containers. */}}
{{- define "dsched.podHead" -}}
schedulerName: {{ include "dsched.startedBy" . }}
{{- with .Values.pods.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
terminationGracePeriodSeconds: {{ .Values.pods.terminationGracePeriodSeconds }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  {{- include "dsched.podSecurity" . | nindent 2 }}
{{- if .Values.plugins.volume }}
initContainers:
  # A wheel is a zip file. Packages and what tells their entry points end up where Python looks for them.
  - name: plugins
    image: {{ include "dsched.image" . }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    command:
      - python
      - -c
      - |
        import glob, sys, zipfile
        wheels = sorted(glob.glob("/wheels/*.whl"))
        for wheel in wheels:
            print("unpacking", wheel)
            zipfile.ZipFile(wheel).extractall("/plugins")
        if not wheels:
            sys.exit("no *.whl in the volume that plugins.volume names")
    resources:
      requests:
        cpu: 50m
        memory: 64Mi
      limits:
        memory: 256Mi
    securityContext:
      {{- include "dsched.containerSecurity" . | nindent 6 }}
    volumeMounts:
      - name: wheels
        mountPath: /wheels
        readOnly: true
      - name: plugins
        mountPath: /plugins
{{- end }}
{{- end -}}

{{/* Of a container: what all of dsched's have. */}}
{{- define "dsched.containerImage" -}}
image: {{ include "dsched.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
envFrom:
  - configMapRef:
      name: {{ include "dsched.name" . }}-environment
{{- end -}}

{{- define "dsched.redisUrl" -}}
- name: DSCHED_REDIS_URL
  valueFrom:
    secretKeyRef:
      name: {{ include "dsched.redisSecret" . }}
      key: url
{{- end -}}

{{- define "dsched.volumeMounts" -}}
- name: scheduler
  mountPath: /etc/dsched
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- if include "dsched.redisAuthority" . }}
- name: redis-authority
  mountPath: /etc/dsched-redis
  readOnly: true
{{- end }}
{{- if .Values.plugins.volume }}
- name: plugins
  mountPath: /plugins
  readOnly: true
{{- end }}
{{- with .Values.pods.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "dsched.volumes" -}}
- name: scheduler
  configMap:
    name: {{ include "dsched.configurationMap" . }}
    {{- if ne .Values.existingConfiguration.key "scheduler.yaml" }}
    items:
      - key: {{ .Values.existingConfiguration.key }}
        path: scheduler.yaml
    {{- end }}
- name: tmp
  emptyDir:
    sizeLimit: 64Mi
{{- if include "dsched.redisAuthority" . }}
- name: redis-authority
  secret:
    secretName: {{ include "dsched.redisSecret" . }}
    items:
      - key: ca.crt
        path: ca.crt
{{- end }}
{{- with .Values.plugins.volume }}
- name: wheels
  {{- toYaml . | nindent 2 }}
- name: plugins
  emptyDir:
    sizeLimit: {{ $.Values.plugins.sizeLimit }}
{{- end }}
{{- with .Values.pods.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
