#!/bin/bash
# api_streams.sh - exec, attach and port-forward through the API of a whole node; see tests/fakes/api_streams_test.py.
. tests/integration/lib-node.sh
node_start
kill_daemon kubelet TERM
start_kubelet --api-address=127.0.0.1:16443
until_true 10 get /api/v1/namespaces
image=localhost/node-lite-web:latest
apply pods.yaml <<Y
apiVersion: v1
kind: Pod
metadata: {name: sh}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: main, image: "$image", imagePullPolicy: Never, command: [sleep, "100000"]}
  - {name: tty, image: "$image", imagePullPolicy: Never, command: [sh], tty: true, stdin: true}
  - {name: open, image: "$image", imagePullPolicy: Never, command: [sh], stdin: true}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: web, image: "$image", imagePullPolicy: Never, command: [sh, -c, "mkdir -p /tmp/w; echo a page >/tmp/w/index.html; exec httpd -f -p 8080 -h /tmp/w"]}
---
apiVersion: v1
kind: Pod
metadata: {name: done}
spec:
  restartPolicy: Never
  containers:
  - {name: c, image: "$image", imagePullPolicy: Never, command: ["true"]}
Y
is_done() { [ "$(pod_field done .status.phase)" = Succeeded ]; }
check "the pods run" until_true 30 pod_ready sh
check "the server runs" until_true 30 pod_ready web
check "the other has ended" until_true 30 is_done
answers() { [ -n "$(in_net curl -s "http://$(pod_field web .status.podIP):8080/")" ]; }
until_true 10 answers
in_net python3 tests/fakes/api_streams_test.py "$api_socket" 127.0.0.1:16443 "$(cat "$node_dir/kubelet/api/token")" "${node_pid[kubelet]}"

# --- both daemons stop while a session is open
cat >"$node_dir/client.py" <<'P'
import sys
sys.path.insert(0, "tests/fakes")
from streaming import *
s = Session(sys.argv[1] + "|http://localhost/api/v1/namespaces/default/pods/sh/exec?container=main&stdout=1&stderr=1&command=sh&command=-c&command=echo+begun;sleep+600")
s.until(b"begun\n")
print("begun", flush=True)
s.run()
print("ended", flush=True)
P
for d in kubelet runtime; do
	: >"$node_dir/session.log"
	python3 "$node_dir/client.py" "$api_socket" >"$node_dir/session.log" 2>&1 &
	client=$!
	until_true 10 grep -q begun "$node_dir/session.log"
	before=$(date +%s%N)
	kill_daemon $d TERM
	check "$d stops at once though a session is open" test $((($(date +%s%N) - before) / 1000000)) -lt 3000
	wait $client
	check "its client hears of it" grep -q ended "$node_dir/session.log"
	start_$d
	check "$d comes back" until_true 20 pod_ready sh
done
