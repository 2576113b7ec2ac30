#!/bin/bash
# Pods as manifests say: init containers, environment, volumes, limits, names, users.
. tests/integration/lib-kubelet.sh
kubelet_node_start --node-labels=disk=ssd

apply init.yaml <<END
apiVersion: v1
kind: Pod
metadata: {name: init}
spec:
  terminationGracePeriodSeconds: 2
  volumes: [{name: w, emptyDir: {}}]
  initContainers:
  - {name: one, image: $image, imagePullPolicy: IfNotPresent, command: [sh, -c, "echo one >>/w/order; sleep 0.3"], volumeMounts: [{name: w, mountPath: /w}]}
  - {name: side, image: $image, imagePullPolicy: IfNotPresent, restartPolicy: Always, command: [sh, -c, 'echo side >>/w/order; $forever'], volumeMounts: [{name: w, mountPath: /w}]}
  - {name: two, image: $image, imagePullPolicy: IfNotPresent, command: [sh, -c, "echo two >>/w/order"], volumeMounts: [{name: w, mountPath: /w}]}
  containers:
  - {name: c, image: $image, imagePullPolicy: IfNotPresent, command: [sh, -c, 'cat /w/order; $forever'], volumeMounts: [{name: w, mountPath: /w}]}
END
check "init containers run one by one, a sidecar among them" until_true 20 pod_ready init || explain init
check "in their order" test "$(log init c | tr '\n' ' ')" = "one side two "
check "init containers are done, the sidecar runs" is init '[.status.initContainerStatuses[] | (.state | keys[0]), .ready] == ["terminated", true, "running", true, "terminated", true]'
clean_pods

apply env.yaml <<END
apiVersion: v1
kind: ConfigMap
metadata: {name: cm}
data: {GREETING: hello, other: x}
---
apiVersion: v1
kind: Secret
metadata: {name: sec}
stringData: {password: s3cret}
---
apiVersion: v1
kind: Service
metadata: {name: my-db}
spec: {selector: {app: none}, ports: [{port: 5432}]}
---
apiVersion: v1
kind: Pod
metadata: {name: env, labels: {app: env}, annotations: {note: "a note"}}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: c
    image: $image
    imagePullPolicy: IfNotPresent
    command: [sh, -c, 'echo "\$A|\$B|\$PW|\$P_GREETING|\$NAME|\$IP|\$CPU|\$APP|\$MY_DB_SERVICE_PORT"; echo \$0; $forever', "\$(A)-arg"]
    resources: {limits: {cpu: 250m, memory: 32Mi}}
    envFrom: [{prefix: P_, configMapRef: {name: cm}}]
    env:
    - {name: A, value: one}
    - {name: B, value: "\$(A)/\$(P_GREETING)/\$\$(A)/\$(NOPE)"}
    - {name: PW, valueFrom: {secretKeyRef: {name: sec, key: password}}}
    - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}
    - {name: APP, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}}
END
check "a pod with an environment runs" until_true 20 pod_ready env || explain env
ip=$(pod_field env .status.podIP)
check "environment of values, ConfigMap, Secret, fields, resources, Services" \
	log_says env c "one|one/hello/\$(A)/\$(NOPE)|s3cret|hello|env|$ip|250|env|5432" || log env c
check "arguments are expanded" log_says env c one-arg
check "the memory limit is in the kernel" test "$(cat /sys/fs/cgroup/memory/$node_name/kubepods/pod"$(uid env)"/memory.limit_in_bytes \
	/sys/fs/cgroup/$node_name/kubepods/pod"$(uid env)"/memory.max 2>/dev/null)" = 33554432
check "the pod is Guaranteed" is env '.status.qosClass == "Guaranteed"'
clean_pods

# A ConfigMap that is not there (R12)
pod wants "echo \$A; $forever" "env: [{name: A, valueFrom: {configMapKeyRef: {name: late, key: k}}}]" | apply wants.yaml
check "a missing ConfigMap is named" until_true 10 waits wants c CreateContainerConfigError
check "with its name" is wants '.status.containerStatuses[0].state.waiting.message == "configmap \"late\" not found"'
apply late.yaml <<END
{apiVersion: v1, kind: ConfigMap, metadata: {name: late}, data: {k: here now}}
END
check "it starts by itself when the ConfigMap appears" until_true 5 log_says wants c "here now"
pod vol "cat /v/k; echo; $forever" "volumeMounts: [{name: v, mountPath: /v}]" "volumes: [{name: v, secret: {secretName: late-secret}}]" | apply vol.yaml
check "a missing Secret holds its pod" until_true 10 event vol FailedMount 'secret "late-secret" not found'
check "which waits" waits vol c ContainerCreating
apply late2.yaml <<END
{apiVersion: v1, kind: Secret, metadata: {name: late-secret}, stringData: {k: secret now}}
END
check "and starts when the Secret appears" until_true 5 log_says vol c "secret now"
clean_pods

apply volumes.yaml <<END
apiVersion: v1
kind: ConfigMap
metadata: {name: files}
data: {a.txt: first, b.txt: other}
binaryData: {bin: AAEC}
---
apiVersion: v1
kind: Pod
metadata: {name: volumes, labels: {app: volumes}}
spec:
  terminationGracePeriodSeconds: 2
  securityContext: {fsGroup: 4321}
  containers:
  - name: c
    image: $image
    imagePullPolicy: IfNotPresent
    command: [sh, -c, '$forever']
    volumeMounts:
    - {name: scratch, mountPath: /scratch}
    - {name: memory, mountPath: /memory}
    - {name: files, mountPath: /files}
    - {name: files, mountPath: /one.txt, subPath: a.txt}
    - {name: scratch, mountPath: /sub, subPathExpr: \$(POD)/x}
    - {name: all, mountPath: /all}
    - {name: host, mountPath: /host, readOnly: true}
    env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
  volumes:
  - {name: scratch, emptyDir: {}}
  - {name: memory, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: files, configMap: {name: files, defaultMode: 0400, items: [{key: a.txt, path: a.txt}, {key: bin, path: sub/bin, mode: 0444}]}}
  - {name: host, hostPath: {path: $node_dir/hostdir, type: DirectoryOrCreate}}
  - name: all
    projected:
      sources:
      - {configMap: {name: files, items: [{key: b.txt, path: b}]}}
      - {downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}, {path: cpu, resourceFieldRef: {containerName: c, resource: requests.cpu}}]}}
END
check "a pod with volumes of all kinds runs" until_true 20 pod_ready volumes || explain volumes
echo from-host >"$node_dir/hostdir/f"
check "ConfigMap files" inside_says volumes c "first 440" sh -c 'echo $(cat /files/a.txt) $(stat -L -c %a /files/a.txt)'
check "binary data" inside_says volumes c "0001 02" sh -c 'od -A n -t x1 /files/sub/bin | sed "s/^ *//; s/00 01/0001/"'
check "a sub-path of a file" inside_says volumes c first cat /one.txt
check "an expanded sub-path" inside_says volumes c hi sh -c 'echo hi >/sub/f; cat /scratch/volumes/x/f'
check "projected sources" inside_says volumes c 'other app="volumes" 0' sh -c 'echo $(cat /all/b) $(cat /all/labels) $(cat /all/cpu)'
check "hostPath, read-only" inside_says volumes c from-host sh -c 'touch /host/x 2>/dev/null || cat /host/f'
check "memory is limited" inside_says volumes c "1048576" sh -c 'dd if=/dev/zero of=/memory/x bs=64k 2>/dev/null; stat -c %s /memory/x'
check "fsGroup" inside_says volumes c "4321 2777" stat -c '%g %a' /scratch
check "ConfigMap mounts are read-only" inside_says volumes c no sh -c 'touch /files/x 2>/dev/null && echo yes || echo no'
sed 's/first/second/; s/app: volumes/app: changed/' "$node_dir/manifests/volumes.yaml" | apply volumes.yaml
check "a changed ConfigMap reaches the pod" until_true 5 inside_says volumes c second cat /files/a.txt
check "so do labels" until_true 5 inside_says volumes c 'app="changed"' cat /all/labels
check "a sub-path keeps what it had" inside_says volumes c first cat /one.txt
check "the pod was not restarted for that" is volumes '.status.containerStatuses[0].restartCount == 0'
clean_pods
check "no mounts are left" test -z "$(grep -F "$node_dir/kubelet" /proc/mounts)"
check "no pod directories are left" test -z "$(find "$node_dir"/{kubelet/pods,logs,links} -mindepth 1)"

# Sub-paths that would leave the volume
pod evil 'ln -s /etc /v/out; exec sleep 0' "volumeMounts: [{name: v, mountPath: /v}]" "restartPolicy: Never
volumes: [{name: v, hostPath: {path: $node_dir/shared, type: DirectoryOrCreate}}]" | apply evil.yaml
check "a container leaves a link in its volume" until_true 10 phase evil Succeeded
pod victim "ls /x; $forever" "volumeMounts: [{name: v, mountPath: /x, subPath: out}]" \
	"volumes: [{name: v, hostPath: {path: $node_dir/shared}}]" | apply victim.yaml
check "a subPath through it is refused" until_true 10 waits victim c CreateContainerConfigError
check "and says why" is victim '.status.containerStatuses[0].state.waiting.message | contains("leaves the volume")'
clean_pods

# Names and users
pod web-0 "hostname; cat /etc/hosts; cat /etc/resolv.conf; $forever" "" "hostname: web
subdomain: db
hostAliases: [{ip: 192.0.2.99, hostnames: [other, name]}]
dnsPolicy: None
dnsConfig: {nameservers: [192.0.2.53], searches: [example.org], options: [{name: ndots, value: '3'}]}
nodeSelector: {disk: ssd}" | apply web.yaml
check "a pod with names" until_true 10 pod_ready web-0 || explain web-0
ip=$(pod_field web-0 .status.podIP)
check "host name" log_says web-0 c web
check "hosts file" log_says web-0 c "$ip	web.db.default.svc.cluster.local	web"
check "host aliases" log_says web-0 c "192.0.2.99	other	name"
check "resolv.conf" log_says web-0 c "options ndots:3"
clean_pods
pod user "id -u; id -g; $forever" "securityContext: {runAsUser: 1234, runAsGroup: 5678}" | apply user.yaml
pod root "$forever" "securityContext: {runAsNonRoot: true}" | apply root.yaml
check "runAsUser" until_true 10 log_says user c 1234
check "runAsGroup" log_says user c 5678
check "runAsNonRoot refuses a root image" until_true 10 waits root c CreateContainerConfigError
check "in the kubelet's words" is root '.status.containerStatuses[0].state.waiting.message | contains("container has runAsNonRoot and image will run as root")'
clean_pods

# Entrypoint and Cmd of the image, command and args of the pod (R9). The image: httpd -f -p 8080 -h /www
for case in none args command both empty; do
	case $case in
	none) more='' ;;
	args) more='args: ["-f", "-p", "8081", "-h", "/www"]' ;;
	command) more='command: [sleep, "1001"]' ;;
	both) more='command: [sleep]
args: ["1002"]' ;;
	empty) more='command: []' ;;
	esac
	apply $case.yaml <<END
apiVersion: v1
kind: Pod
metadata: {name: cmd-$case}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: c
    image: $image
    imagePullPolicy: IfNotPresent
$(printf '%s\n' "$more" | sed 's/^/    /')
END
done
runs() { inside "$1" c sh -c 'tr "\0" " " </proc/1/cmdline' | grep -qxF -- "$2 "; }
check "no command, no args: the image's" until_true 15 runs cmd-none "httpd -f -p 8080 -h /www"
check "args alone: the image's entrypoint" until_true 5 runs cmd-args "httpd -f -p 8081 -h /www"
check "command alone: without the image's arguments" until_true 5 runs cmd-command "sleep 1001"
check "both" until_true 5 runs cmd-both "sleep 1002"
check "an empty command is none" until_true 5 runs cmd-empty "httpd -f -p 8080 -h /www"
clean_pods

# What cannot be done is refused by name, never ignored (32)
apply refused.yaml <<END
apiVersion: v1
kind: Pod
metadata: {name: refused}
spec:
  containers: [{name: c, image: $image}]
  volumes: [{name: v, nfs: {server: x, path: /}}]
END
check "an unsupported volume refuses the pod" until_true 5 is refused '.status.phase == "Failed" and .status.reason == "PodFeatureUnsupported"'
check "the field is named" is refused '.status.message | contains("spec.volumes[0].nfs")'
check "and there is an event" event refused PodFeatureUnsupported
clean_pods

# Host ports (33)
pod first "$forever" "ports: [{containerPort: 80, hostPort: 18080}]" | apply a-first.yaml
check "the first on a host port runs" until_true 10 pod_ready first
pod second "$forever" "ports: [{containerPort: 80, hostPort: 18080}]" | apply b-second.yaml
check "the second is refused" until_true 5 is second '.status.phase == "Failed" and .status.reason == "NodePorts"'
check "the first goes on" pod_ready first
restart_kubelet KILL --node-labels=disk=ssd
check "also after a restart" until_true 5 is second '.status.phase == "Failed"'
check "and the first runs on" is first '.status.containerStatuses[0].restartCount == 0 and .status.phase == "Running"'
remove a-first.yaml
check "when the port is free the second runs" until_true 10 pod_ready second || explain second
clean_pods
kubelet_node_end
