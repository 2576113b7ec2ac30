/* schema.c - purpose: which fields the Kubernetes objects that we serve have, of which type, and how their lists merge. */
#include "common/kube/schema.h"

#include "common/base/str.h"

/*
 * A line for each type: its name, then field:type.
 *   s string  i integer  b boolean  q quantity  x integer or string  t time  * anything  Name another line
 *   [T]key list merged by that field, [T]+ a merged set of scalars, [T] a list that is replaced;  {T} map
 *   ... as the last word: other fields are fine too
 */
static const char TABLE[] =
	"Pod apiVersion:s kind:s metadata:ObjectMeta spec:PodSpec status:PodStatus\n"
	"Node apiVersion:s kind:s metadata:ObjectMeta spec:NodeSpec status:NodeStatus\n"
	"Namespace apiVersion:s kind:s metadata:ObjectMeta spec:NamespaceSpec status:Status\n"
	"Service apiVersion:s kind:s metadata:ObjectMeta spec:ServiceSpec status:Status\n"
	"ConfigMap apiVersion:s kind:s metadata:ObjectMeta immutable:b data:{s} binaryData:{s}\n"
	"Secret apiVersion:s kind:s metadata:ObjectMeta immutable:b data:{s} stringData:{s} type:s\n"
	"EndpointSlice apiVersion:s kind:s metadata:ObjectMeta addressType:s endpoints:[Endpoint] ports:[EndpointPort]\n"
	"Event apiVersion:s kind:s metadata:ObjectMeta involvedObject:ObjectReference reason:s message:s source:EventSource"
	" firstTimestamp:t lastTimestamp:t count:i type:s eventTime:t series:EventSeries action:s related:ObjectReference"
	" reportingComponent:s reportingInstance:s\n"
	"Lease apiVersion:s kind:s metadata:ObjectMeta spec:LeaseSpec\n"
	"ObjectMeta name:s generateName:s namespace:s selfLink:s uid:s resourceVersion:s generation:i creationTimestamp:t"
	" deletionTimestamp:t deletionGracePeriodSeconds:i labels:{s} annotations:{s} ownerReferences:[OwnerReference]uid"
	" finalizers:[s]+ managedFields:[*]\n"
	"OwnerReference apiVersion:s kind:s name:s uid:s controller:b blockOwnerDeletion:b\n"
	"PodSpec volumes:[Volume]name initContainers:[Container]name containers:[Container]name"
	" ephemeralContainers:[EphemeralContainer]name restartPolicy:s terminationGracePeriodSeconds:i"
	" activeDeadlineSeconds:i dnsPolicy:s nodeSelector:{s} serviceAccountName:s serviceAccount:s"
	" automountServiceAccountToken:b nodeName:s hostNetwork:b hostPID:b hostIPC:b shareProcessNamespace:b"
	" securityContext:PodSecurityContext imagePullSecrets:[LocalObjectReference]name hostname:s subdomain:s"
	" affinity:Affinity schedulerName:s tolerations:[Toleration] hostAliases:[HostAlias]ip priorityClassName:s priority:i"
	" dnsConfig:PodDNSConfig readinessGates:[PodReadinessGate] runtimeClassName:s enableServiceLinks:b"
	" preemptionPolicy:s overhead:{q} topologySpreadConstraints:[TopologySpreadConstraint]topologyKey"
	" setHostnameAsFQDN:b os:PodOS hostUsers:b schedulingGates:[PodSchedulingGate]name"
	" resourceClaims:[PodResourceClaim]name resources:ResourceRequirements hostnameOverride:s workloadRef:*"
	" schedulingGroup:*\n"
	"Container name:s image:s command:[s] args:[s] workingDir:s ports:[ContainerPort]containerPort"
	" envFrom:[EnvFromSource] env:[EnvVar]name resources:ResourceRequirements resizePolicy:[ContainerResizePolicy]"
	" restartPolicy:s restartPolicyRules:[ContainerRestartRule] volumeMounts:[VolumeMount]mountPath"
	" volumeDevices:[VolumeDevice]devicePath livenessProbe:Probe readinessProbe:Probe startupProbe:Probe"
	" lifecycle:Lifecycle terminationMessagePath:s terminationMessagePolicy:s imagePullPolicy:s"
	" securityContext:SecurityContext stdin:b stdinOnce:b tty:b\n"
	"EphemeralContainer name:s image:s command:[s] args:[s] workingDir:s ports:[ContainerPort]containerPort"
	" envFrom:[EnvFromSource] env:[EnvVar]name resources:ResourceRequirements resizePolicy:[ContainerResizePolicy]"
	" restartPolicy:s restartPolicyRules:[ContainerRestartRule] volumeMounts:[VolumeMount]mountPath"
	" volumeDevices:[VolumeDevice]devicePath livenessProbe:Probe readinessProbe:Probe startupProbe:Probe"
	" lifecycle:Lifecycle terminationMessagePath:s terminationMessagePolicy:s imagePullPolicy:s"
	" securityContext:SecurityContext stdin:b stdinOnce:b tty:b targetContainerName:s\n"
	"ContainerPort name:s hostPort:i containerPort:i protocol:s hostIP:s\n"
	"EnvFromSource prefix:s configMapRef:OptionalName secretRef:OptionalName\n"
	"OptionalName name:s optional:b\n"
	"EnvVar name:s value:s valueFrom:EnvVarSource\n"
	"EnvVarSource fieldRef:ObjectFieldSelector resourceFieldRef:ResourceFieldSelector configMapKeyRef:KeySelector"
	" secretKeyRef:KeySelector fileKeyRef:FileKeySelector\n"
	"ObjectFieldSelector apiVersion:s fieldPath:s\n"
	"ResourceFieldSelector containerName:s resource:s divisor:q\n"
	"KeySelector name:s key:s optional:b\n"
	"FileKeySelector volumeName:s path:s key:s optional:b\n"
	"ResourceRequirements limits:{q} requests:{q} claims:[ResourceClaim]\n"
	"ResourceClaim name:s request:s\n"
	"ContainerResizePolicy resourceName:s restartPolicy:s\n"
	"ContainerRestartRule action:s exitCodes:ExitCodes\n"
	"ExitCodes operator:s values:[i]\n"
	"VolumeMount name:s readOnly:b recursiveReadOnly:s mountPath:s subPath:s mountPropagation:s subPathExpr:s\n"
	"VolumeDevice name:s devicePath:s\n"
	"Probe exec:ExecAction httpGet:HTTPGetAction tcpSocket:TCPSocketAction grpc:GRPCAction initialDelaySeconds:i"
	" timeoutSeconds:i periodSeconds:i successThreshold:i failureThreshold:i terminationGracePeriodSeconds:i\n"
	"Lifecycle postStart:LifecycleHandler preStop:LifecycleHandler stopSignal:s\n"
	"LifecycleHandler exec:ExecAction httpGet:HTTPGetAction tcpSocket:TCPSocketAction sleep:SleepAction\n"
	"ExecAction command:[s]\n"
	"HTTPGetAction path:s port:x host:s scheme:s httpHeaders:[HTTPHeader]\n"
	"HTTPHeader name:s value:s\n"
	"TCPSocketAction port:x host:s\n"
	"GRPCAction port:i service:s\n"
	"SleepAction seconds:i\n"
	"SecurityContext capabilities:Capabilities privileged:b seLinuxOptions:SELinuxOptions"
	" windowsOptions:WindowsOptions runAsUser:i runAsGroup:i runAsNonRoot:b readOnlyRootFilesystem:b"
	" allowPrivilegeEscalation:b procMount:s seccompProfile:SeccompProfile appArmorProfile:AppArmorProfile\n"
	"Capabilities add:[s] drop:[s]\n"
	"SELinuxOptions user:s role:s type:s level:s\n"
	"WindowsOptions gmsaCredentialSpecName:s gmsaCredentialSpec:s runAsUserName:s hostProcess:b\n"
	"SeccompProfile type:s localhostProfile:s\n"
	"AppArmorProfile type:s localhostProfile:s\n"
	"PodSecurityContext seLinuxOptions:SELinuxOptions windowsOptions:WindowsOptions runAsUser:i runAsGroup:i"
	" runAsNonRoot:b supplementalGroups:[i] supplementalGroupsPolicy:s fsGroup:i sysctls:[Sysctl]"
	" fsGroupChangePolicy:s seccompProfile:SeccompProfile appArmorProfile:AppArmorProfile seLinuxChangePolicy:s\n"
	"Sysctl name:s value:s\n"
	"LocalObjectReference name:s\n"
	"Affinity nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAffinity\n"
	"NodeAffinity requiredDuringSchedulingIgnoredDuringExecution:NodeSelector"
	" preferredDuringSchedulingIgnoredDuringExecution:[PreferredSchedulingTerm]\n"
	"NodeSelector nodeSelectorTerms:[NodeSelectorTerm]\n"
	"PreferredSchedulingTerm weight:i preference:NodeSelectorTerm\n"
	"NodeSelectorTerm matchExpressions:[SelectorRequirement] matchFields:[SelectorRequirement]\n"
	"SelectorRequirement key:s operator:s values:[s]\n"
	"PodAffinity requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]"
	" preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]\n"
	"WeightedPodAffinityTerm weight:i podAffinityTerm:PodAffinityTerm\n"
	"PodAffinityTerm labelSelector:LabelSelector namespaces:[s] topologyKey:s namespaceSelector:LabelSelector"
	" matchLabelKeys:[s] mismatchLabelKeys:[s]\n"
	"LabelSelector matchLabels:{s} matchExpressions:[SelectorRequirement]\n"
	"Toleration key:s operator:s value:s effect:s tolerationSeconds:i\n"
	"HostAlias ip:s hostnames:[s]\n"
	"PodDNSConfig nameservers:[s] searches:[s] options:[PodDNSConfigOption]\n"
	"PodDNSConfigOption name:s value:s\n"
	"PodReadinessGate conditionType:s\n"
	"TopologySpreadConstraint maxSkew:i topologyKey:s whenUnsatisfiable:s labelSelector:LabelSelector minDomains:i"
	" nodeAffinityPolicy:s nodeTaintsPolicy:s matchLabelKeys:[s]\n"
	"PodOS name:s\n"
	"PodSchedulingGate name:s\n"
	"PodResourceClaim name:s resourceClaimName:s resourceClaimTemplateName:s\n"
	"Volume name:s hostPath:HostPathVolume emptyDir:EmptyDirVolume secret:SecretVolume configMap:ConfigMapVolume"
	" downwardAPI:DownwardAPIVolume projected:ProjectedVolume persistentVolumeClaim:PersistentVolumeClaimVolume"
	" csi:CSIVolume ephemeral:* image:ImageVolume nfs:NFSVolume iscsi:* fc:* rbd:* cephfs:* glusterfs:* cinder:*"
	" flexVolume:* flocker:* gitRepo:* gcePersistentDisk:* awsElasticBlockStore:* azureFile:* azureDisk:* quobyte:*"
	" vsphereVolume:* photonPersistentDisk:* portworxVolume:* scaleIO:* storageos:*\n"
	"HostPathVolume path:s type:s\n"
	"EmptyDirVolume medium:s sizeLimit:q\n"
	"SecretVolume secretName:s items:[KeyToPath] defaultMode:i optional:b\n"
	"ConfigMapVolume name:s items:[KeyToPath] defaultMode:i optional:b\n"
	"KeyToPath key:s path:s mode:i\n"
	"DownwardAPIVolume items:[DownwardAPIFile] defaultMode:i\n"
	"DownwardAPIFile path:s fieldRef:ObjectFieldSelector resourceFieldRef:ResourceFieldSelector mode:i\n"
	"ProjectedVolume sources:[VolumeProjection] defaultMode:i\n"
	"VolumeProjection secret:ProjectedKeys configMap:ProjectedKeys downwardAPI:DownwardAPIProjection"
	" serviceAccountToken:TokenProjection clusterTrustBundle:* podCertificate:*\n"
	"ProjectedKeys name:s items:[KeyToPath] optional:b\n"
	"DownwardAPIProjection items:[DownwardAPIFile]\n"
	"TokenProjection audience:s expirationSeconds:i path:s\n"
	"PersistentVolumeClaimVolume claimName:s readOnly:b\n"
	"CSIVolume driver:s readOnly:b fsType:s volumeAttributes:{s} nodePublishSecretRef:LocalObjectReference\n"
	"ImageVolume reference:s pullPolicy:s\n"
	"NFSVolume server:s path:s readOnly:b\n"
	"PodStatus conditions:[*]type podIPs:[*]ip hostIPs:[*]ip ...\n"
	"Status conditions:[*]type ...\n"
	"NodeSpec podCIDR:s podCIDRs:[s]+ providerID:s unschedulable:b taints:[Taint]key configSource:* externalID:s\n"
	"Taint key:s value:s effect:s timeAdded:t\n"
	"NodeStatus conditions:[*]type addresses:[*]type ...\n"
	"NamespaceSpec finalizers:[s]\n"
	"ServiceSpec ports:[ServicePort]port selector:{s} clusterIP:s clusterIPs:[s] type:s externalIPs:[s]"
	" sessionAffinity:s loadBalancerIP:s loadBalancerSourceRanges:[s] externalName:s externalTrafficPolicy:s"
	" healthCheckNodePort:i publishNotReadyAddresses:b sessionAffinityConfig:SessionAffinityConfig ipFamilies:[s]"
	" ipFamilyPolicy:s allocateLoadBalancerNodePorts:b loadBalancerClass:s internalTrafficPolicy:s"
	" trafficDistribution:s\n"
	"ServicePort name:s protocol:s appProtocol:s port:i targetPort:x nodePort:i\n"
	"SessionAffinityConfig clientIP:ClientIPConfig\n"
	"ClientIPConfig timeoutSeconds:i\n"
	"Endpoint addresses:[s] conditions:EndpointConditions hostname:s targetRef:ObjectReference nodeName:s zone:s"
	" hints:* deprecatedTopology:{s}\n"
	"EndpointConditions ready:b serving:b terminating:b\n"
	"EndpointPort name:s protocol:s port:i appProtocol:s\n"
	"ObjectReference kind:s namespace:s name:s uid:s apiVersion:s resourceVersion:s fieldPath:s\n"
	"EventSource component:s host:s\n"
	"EventSeries count:i lastObservedTime:t\n"
	"LeaseSpec holderIdentity:s leaseDurationSeconds:i acquireTime:t renewTime:t leaseTransitions:i strategy:s"
	" preferredHolder:s\n";

static struct schema spelled(const char *p, size_t len)
{
	struct schema s = { .kind = SCHEMA_ANY };
	const char *close = NULL;

	switch (*p) {
	case 's':
		s.kind = SCHEMA_STRING;
		break;
	case 'i':
		s.kind = SCHEMA_INT;
		break;
	case 'b':
		s.kind = SCHEMA_BOOL;
		break;
	case 'q':
		s.kind = SCHEMA_QUANTITY;
		break;
	case 'x':
		s.kind = SCHEMA_INT_OR_STRING;
		break;
	case 't':
		s.kind = SCHEMA_TIME;
		break;
	case '[':
		s.kind = SCHEMA_LIST;
		close = memchr(p, ']', len);
		break;
	case '{':
		s.kind = SCHEMA_MAP;
		close = memchr(p, '}', len);
		break;
	case '*':
		break;
	default:
		s.kind = SCHEMA_OBJECT;
		s.type = (struct bytes){ p, len };
	}
	if (close) {
		s.type = (struct bytes){ p + 1, (size_t)(close - p) - 1 };
		s.key = (struct bytes){ close + 1, (size_t)(p + len - close) - 1 };
	}
	return s;
}

/* The fields of a type: what stands behind its name in its line; NULL if there is no such type. */
static const char *type_line(struct bytes type)
{
	for (const char *line = TABLE; *line; line = strchr(line, '\n') + 1)
		if (strncmp(line, type.ptr, type.len) == 0 && line[type.len] == ' ')
			return line + type.len;
	return NULL;
}

struct schema schema_of(const char *type)
{
	struct bytes name = { type, strlen(type) };
	const char *line = type_line(name);

	if (!line)
		return (struct schema){ .kind = SCHEMA_ANY };
	return (struct schema){ .kind = SCHEMA_OBJECT, .type = { line - name.len, name.len } };
}

bool schema_field(const struct schema *object, const char *field, struct schema *ret)
{
	*ret = (struct schema){ .kind = SCHEMA_ANY };
	if (object->kind == SCHEMA_MAP) {
		*ret = schema_element(object);
		return true;
	}
	if (object->kind != SCHEMA_OBJECT)
		return true;
	const char *p = type_line(object->type);
	size_t len = strlen(field);

	while (p && *p == ' ') {
		p++;
		size_t word = strcspn(p, " \n");

		if (word == 3 && strncmp(p, "...", 3) == 0)
			return true;
		if (word > len + 1 && strncmp(p, field, len) == 0 && p[len] == ':') {
			*ret = spelled(p + len + 1, word - len - 1);
			return true;
		}
		p += word;
	}
	return p == NULL;
}

struct schema schema_element(const struct schema *list)
{
	if (list->kind != SCHEMA_LIST && list->kind != SCHEMA_MAP)
		return (struct schema){ .kind = SCHEMA_ANY };
	return spelled(list->type.ptr, list->type.len);
}

static const char *type_name(const json_t *j)
{
	switch (json_typeof(j)) {
	case JSON_OBJECT:
		return "object";
	case JSON_ARRAY:
		return "list";
	case JSON_STRING:
		return "string";
	case JSON_INTEGER:
		return "integer";
	case JSON_REAL:
		return "number";
	case JSON_TRUE:
	case JSON_FALSE:
		return "boolean";
	case JSON_NULL:
		break;
	}
	return "null";
}

/* NULL: it fits. */
static const char *misfit(enum schema_kind kind, const json_t *j)
{
	switch (kind) {
	case SCHEMA_STRING:
	case SCHEMA_TIME:
		return json_is_string(j) ? NULL : "string";
	case SCHEMA_INT:
		return json_is_integer(j) ? NULL : "integer";
	case SCHEMA_BOOL:
		return json_is_boolean(j) ? NULL : "boolean";
	case SCHEMA_QUANTITY:
		return json_is_string(j) || json_is_number(j) ? NULL : "quantity";
	case SCHEMA_INT_OR_STRING:
		return json_is_string(j) || json_is_integer(j) ? NULL : "integer or string";
	case SCHEMA_OBJECT:
	case SCHEMA_MAP:
		return json_is_object(j) ? NULL : "object";
	case SCHEMA_LIST:
		return json_is_array(j) ? NULL : "list";
	case SCHEMA_ANY:
		break;
	}
	return NULL;
}

static void check(const struct schema *s, const json_t *tree, struct str *path, const struct schema_problems *p);

static void check_fields(const struct schema *s, const json_t *tree, struct str *path, const struct schema_problems *p)
{
	size_t len = path->len;
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)tree, key, value) {
		struct schema field;
		bool known = schema_field(s, key, &field);

		str_addf(path, len ? ".%s" : "%s", key);
		if (!known && p->unknown)
			p->unknown(p->data, path->buf);
		else
			check(&field, value, path, p);
		path->len = len;
		path->buf[len] = '\0';
	}
}

static void check(const struct schema *s, const json_t *tree, struct str *path, const struct schema_problems *p)
{
	if (s->kind == SCHEMA_ANY || json_is_null(tree))
		return;
	const char *expected = misfit(s->kind, tree);
	if (expected) {
		if (p->wrong_type)
			p->wrong_type(p->data, str_get(path), expected, type_name(tree));
		return;
	}
	if (s->kind == SCHEMA_OBJECT || s->kind == SCHEMA_MAP) {
		check_fields(s, tree, path, p);
	} else if (s->kind == SCHEMA_LIST) {
		struct schema element = schema_element(s);
		size_t len = path->len, i;
		json_t *value;

		json_array_foreach ((json_t *)tree, i, value) {
			str_addf(path, "[%zu]", i);
			check(&element, value, path, p);
			path->len = len;
			path->buf[len] = '\0';
		}
	}
}

void schema_check(const struct schema *schema, const json_t *tree, const struct schema_problems *problems)
{
	_cleanup_(str_done) struct str path = STR_INIT;

	str_reserve(&path, 128);
	path.buf[0] = '\0';
	check(schema, tree, &path, problems);
}

void schema_prune(const struct schema *schema, json_t *tree)
{
	struct schema element = schema_element(schema);
	const char *key;
	json_t *value;
	void *tmp;
	size_t i;

	if (schema->kind == SCHEMA_ANY)
		return;
	json_object_foreach_safe (tree, tmp, key, value) {
		struct schema field;

		if (schema_field(schema, key, &field))
			schema_prune(&field, value);
		else
			json_object_del(tree, key);
	}
	json_array_foreach (tree, i, value)
		schema_prune(&element, value);
}
