# api_streams_test.py - purpose: exec, attach and port-forward through kubelet-lite's API, by both protocols, on the Unix socket
# and on TLS; prints "ok - " and "not ok - " lines. api_streams_test.py SOCKET TLS-ADDRESS TOKEN KUBELET-PID
# Pods: "sh" with containers main, tty (terminal, stdin) and open (stdin), "web" that serves a page on 8080, "done" that has ended.
import hashlib, os, sys, threading, time, traceback, urllib.parse

sys.path.insert(0, os.path.dirname(__file__))
from streaming import *

SOCK, TLS, TOKEN, KUBELET = sys.argv[1:5]
BEARER = [("Authorization", "Bearer " + TOKEN)]
failed = 0


def check(name, good, *more):
    global failed
    print(("ok - " if good else "not ok - ") + name + ("" if good else " " + " ".join(repr(m)[:300] for m in more)), flush=True)
    failed += not good


def url(where, pod, sub, **query):
    text = "/api/v1/namespaces/default/pods/%s/%s?%s" % (pod, sub, urllib.parse.urlencode(query, doseq=True))
    return (SOCK + "|http://localhost" if where == "socket" else "https://" + TLS) + text


def session(where, carrier, command, pod="sh", sub="exec", container="main", **more):
    query = dict(stdout="true", stderr="true", container=container)
    for k in ("stdin", "tty"):
        if more.get(k):
            query[k] = "true"
    if command:
        query["command"] = command
    return Session(url(where, pod, sub, **query), carrier, more=BEARER if where == "TLS" else (), **more)


def refusal(pod, sub, headers=None, **query):
    try:
        connect(url("socket", pod, sub, **query), [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1"),
                ("X-Stream-Protocol-Version", "v4.channel.k8s.io")] if headers is None else headers, "POST")
        return "none"
    except Refused as r:
        status = json.loads(r.body)
        assert status["kind"] == "Status" and status["code"] == r.status
        return "%d %s" % (r.status, status["message"])


def sessions():
    blob = os.urandom(3000000)
    for where in ("socket", "TLS"):
        for carrier in ("spdy", "websocket"):
            name = "%s on the %s" % (carrier, where)
            s = session(where, carrier, ["sh", "-c", "echo out; echo err >&2; exit 7"]).run()
            check("exec by " + name, (s.out, s.err, s.code()) == (b"out\n", b"err\n", 7), bytes(s.out), bytes(s.err), bytes(s.status))
            s = session(where, carrier, ["md5sum"], stdin=True)
            s.send(blob)
            s.end_input()
            s.run()
            check("3 MB of stdin by " + name, s.out.split()[:1] == [hashlib.md5(blob).hexdigest().encode()], bytes(s.out))
            s = session(where, carrier, ["seq", "1", "500000"], receive_buffer=16384)
            s.pause = 0.001
            s.run()
            check("a slow reader gets all by " + name, s.out.endswith(b"\n500000\n") and s.out.count(b"\n") == 500000 and s.code() == 0)
            s = session(where, carrier, ["sh"], stdin=True, tty=True)
            s.resize(31, 71)
            s.until(b"#")
            s.send(b"stty size; exit 5\n")
            s.run()
            check("a terminal by " + name, b"31 71" in s.out and s.code() == 5, bytes(s.out))
            s = session(where, carrier, [], sub="attach", container="open", stdin=True)
            time.sleep(0.3)
            s.send(b"echo at$((1))ached\n")
            s.until(b"at1ached\n")
            check("attach by " + name, True)
            s.close()
            f = Forward(url(where, "web", "portforward"), carrier == "websocket", BEARER if where == "TLS" else ())
            pairs = [f.pair(8080) for _ in range(10)]
            for p in pairs:
                p.send(b"GET / HTTP/1.0\r\n\r\n")
                p.end()
            check("port-forward by " + name, all(b"a page" in p.read() for p in pairs))
            f.close()


def refusals():
    want = {
        "Upgrade request required": refusal("sh", "exec", [], command="ls", stdout="true", container="main"),
        'pods "nosuch" not found': refusal("nosuch", "exec", command="ls", stdout="true"),
        "container nosuch is not valid for pod sh": refusal("sh", "exec", command="ls", stdout="true", container="nosuch"),
        "a container name must be specified for pod sh": refusal("sh", "exec", command="ls", stdout="true"),
        "you must specify at least 1 of stdin, stdout, stderr": refusal("sh", "exec", command="ls", container="main"),
        "you must specify a command": refusal("sh", "exec", stdout="true", container="main"),
        "completed pod": refusal("done", "exec", command="ls", stdout="true"),
        "must be 1 to 65535": refusal("web", "portforward", ports="0"),
        "portforward.k8s.io": refusal("web", "portforward"),
    }
    for text, got in want.items():
        check("refused: " + text, text in got, got)
    try:
        connect(url("TLS", "sh", "exec", command="ls", stdout="true", container="main"), [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1")])
        check("TLS without a token", False)
    except Refused as r:
        check("TLS without a token", r.status == 401, r.status)


def many():
    good, lock = [0], threading.Lock()

    def one(i):
        s = session("socket", "spdy" if i % 2 else "websocket", ["cat"], stdin=True)
        s.send(b"hello %d\n" % i)
        s.until(b"hello %d\n" % i)
        barrier.wait(60)
        s.end_input()
        with lock:
            good[0] += s.run().code() == 0
    barrier = threading.Barrier(60)
    threads = [threading.Thread(target=one, args=(i,)) for i in range(60)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(90)
    check("60 sessions at once", good[0] == 60, good[0])


def clients_that_go():
    for carrier in ("spdy", "websocket"):
        s = session("socket", carrier, ["yes"])
        s.until(b"y\n")
        s.cut()
        end = time.time() + 5
        while time.time() < end and session("socket", "spdy", ["sh", "-c", "ps -o args | grep -c '^yes'"]).run().out != b"0\n":
            time.sleep(0.1)
        check("a client that is cut off ends its process, by " + carrier, time.time() < end)


for case in (sessions, refusals, many, clients_that_go):
    try:
        case()
    except Exception as e:
        check("%s: %s" % (case.__name__, e), False, traceback.format_exc()[-900:])
sys.exit(failed != 0)
