# streaming_test.py - purpose: sessions with the streaming server from end to end; prints "ok - " and "not ok - " lines.
# streaming_test.py SOCKET PID-OF-DAEMON POD HOST-POD CONTAINER TTY-CONTAINER ONCE-CONTAINER OPEN-CONTAINER CONTAINER-PID
# Runs in the node's network namespace. tests/integration/runtime_streaming.sh starts it.
import hashlib, json, os, re, socket, struct, subprocess, sys, threading, time, traceback

sys.path.insert(0, os.path.dirname(__file__))
from streaming import *

SOCK, DAEMON, POD, HOST_POD, MAIN, TTY, ONCE, OPEN, MAIN_PID = sys.argv[1:10]
failed = 0


def check(name, good, *more):
    global failed
    print(("ok - " if good else "not ok - ") + name + ("" if good else " " + " ".join(repr(m)[:300] for m in more)), flush=True)
    failed += not good


def case(function):
    try:
        function()
    except Exception as e:
        check("%s: %s" % (function.__name__, e), False, traceback.format_exc()[-900:])


def run(command, carrier="spdy", version=None, data=None, **more):
    tty = more.get("tty", False)
    s = Session(exec_url(SOCK, MAIN, command, stdin=data is not None, tty=tty), carrier, version, stdin=data is not None, **more)
    if data is not None:
        s.send(data)
        s.end_input()
    return s.run()


def until(seconds, what):
    end = time.time() + seconds
    while time.time() < end:
        if what():
            return True
        time.sleep(0.05)
    return what()


def runs(command):
    """Processes of the container with this command line."""
    return run(["sh", "-c", "ps -o args | grep '^%s' | wc -l" % command]).out.strip() != b"0"


def cpu():
    fields = open("/proc/%s/stat" % DAEMON).read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


CARRIERS = [("spdy", None), ("websocket", None)]
VERSIONS = [("spdy", v) for v in ("v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io",
                                  "channel.k8s.io", "")] + \
           [("websocket", v) for v in ("v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io",
                                       "base64.channel.k8s.io", "")]


def versions():
    for carrier, version in VERSIONS:
        name = "%s %s" % (carrier, version or "without a version")
        s = run(["sh", "-c", "echo out; echo err >&2; exit 7"], carrier, version)
        old = not version.startswith(("v4", "v5"))
        good = b"exit status 7" in s.status if old else s.code() == 7
        check("exec by %s: both outputs and the exit code" % name, s.out == b"out\n" and s.err == b"err\n" and good,
              bytes(s.out), bytes(s.err), bytes(s.status))
        check("exec by %s: the version is confirmed" % name, s.protocol == version, s.protocol)
        s = run(["true"], carrier, version)
        check("exec by %s: success" % name, s.status == b"" if old else s.code() == 0, bytes(s.status))
    s = run(["true"])
    check("SPDY: every stream is answered and ended", s.replies == {"error", "stdout", "stderr"} == s.ended, s.replies, s.ended)
    s = run(["true"], "websocket")
    check("WebSocket: closed normally", s.ws.code == 1000, s.ws.code)


def errors():
    for carrier, version in CARRIERS:
        s = run(["nosuch"], carrier)
        check("exec of what is not there by %s" % carrier, 'exec: "nosuch": executable file not found in $PATH' in str(s.code()),
              bytes(s.status))
        s = run(["sh", "-c", "kill -9 $$"], carrier)
        check("exec that is killed gives 137 by %s" % carrier, s.code() == 137, bytes(s.status))


class Gather:
    data = b""

    def send(self, data):
        self.data += data


def inputs():
    blob = os.urandom(5000000)
    digest = hashlib.md5(blob).hexdigest().encode()
    for carrier, version in CARRIERS:
        check("5 MB of stdin by %s" % carrier, run(["md5sum"], carrier, data=blob).out.split()[:1] == [digest])
        check("5 MB of stdin to one that is slow to read by %s" % carrier,
              run(["sh", "-c", "sleep 1; md5sum"], carrier, data=blob).out.split()[:1] == [digest])
        check("stdin that nobody reads by %s" % carrier, run(["true"], carrier, data=b"x" * 300000).code() == 0)
        s = run(["sh", "-c", "cat; echo end"], carrier, data=b"")
        check("stdin that ends at once by %s" % carrier, s.out == b"end\n", bytes(s.out))
    url = exec_url(SOCK, MAIN, ["sh", "-c", "cat >/tmp/v4; echo $? >/tmp/v4.done"], stdin=True)
    s = Session(url, "websocket", "v4.channel.k8s.io", stdin=True)
    s.send(b"all of this")
    s.close()
    check("v4 over WebSocket: closing is the end of stdin, nothing is lost",
          until(5, lambda: run(["cat", "/tmp/v4", "/tmp/v4.done"]).out == b"all of this0\n"))
    u = urllib.parse.urlsplit(exec_url(SOCK, MAIN, ["sh", "-c", "cat >/tmp/once; echo $? >/tmp/once.done"], stdin=True))
    ws = WebSocket.__new__(WebSocket)
    ws.b = Gather()
    ws.send(b"\0in one go")
    ws.frame(8, b"")
    s = socket.create_connection((u.hostname, u.port))
    s.sendall(("GET %s HTTP/1.1\r\nHost: x\r\n" % u.path + "".join("%s: %s\r\n" % h for h in WS_HEADERS) +
               "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n").encode() + ws.b.data)
    while s.recv(65536): # a close() with something unread would be a reset
        pass
    s.close()
    check("also when all of it comes in one go", until(5, lambda: run(["cat", "/tmp/once", "/tmp/once.done"]).out == b"in one go0\n"))


def slow_reader():
    for carrier, version in CARRIERS:
        s = Session(exec_url(SOCK, MAIN, ["seq", "1", "2000000"]), carrier, receive_buffer=16384)
        time.sleep(1)
        s.pause = 0.001
        s.run()
        lines = bytes(s.out).split(b"\n")
        check("a slow reader gets every line of 2000000 by %s" % carrier, len(lines) == 2000001 and lines[-2] == b"2000000" and
              s.code() == 0, len(lines), lines[-3:])
    before = memory()
    readers = [Session(exec_url(SOCK, MAIN, ["yes"]), c, receive_buffer=16384) for c in ("spdy", "websocket") for _ in range(10)]
    time.sleep(1)
    grown = memory() - before
    sanitized = "libasan" in open("/proc/%s/maps" % DAEMON).read() # which frees late
    check("20 who do not read cost less than 8 MB: %d kB" % grown, grown < 8192 or sanitized)
    used = cpu()
    time.sleep(1)
    check("and no time: %d ticks" % (cpu() - used), cpu() - used < 20)
    for r in readers:
        r.close()
    check("when they have gone their processes end", until(5, lambda: not runs("yes")))


def memory():
    return int(re.search(r"VmRSS:\s+(\d+)", open("/proc/%s/status" % DAEMON).read()).group(1))


def client_goes():
    for carrier, version in CARRIERS:
        s = Session(exec_url(SOCK, MAIN, ["yes"]), carrier)
        s.until(b"y\n")
        used = cpu()
        s.cut()
        check("a client that is cut off: its process ends with the next output, by %s" % carrier, until(5, lambda: not runs("yes")))
        time.sleep(1)
        check("and nothing spins: %d ticks" % (cpu() - used), cpu() - used < 60)
        s = Session(exec_url(SOCK, MAIN, ["sh", "-c", "cat >/dev/null; sleep 1; echo $? >/tmp/after"], stdin=True), carrier, stdin=True)
        time.sleep(0.3)
        s.cut()
        check("one that prints nothing goes on, as with peers, by %s" % carrier,
              until(5, lambda: run(["sh", "-c", "cat /tmp/after; rm -f /tmp/after"]).out == b"0\n"))
        s = Session(exec_url(SOCK, MAIN, ["sh"], stdin=True, tty=True), carrier, stdin=True, tty=True)
        s.resize(24, 80)
        s.send(b"sleep 777\n")
        s.until(b"sleep 777")
        until(3, lambda: runs("sleep 777"))
        s.cut()
        check("a terminal hangs up by %s" % carrier, until(5, lambda: not runs("sleep 777")))


def drain():
    for carrier, version in CARRIERS:
        begin = time.time()
        s = run(["sh", "-c", "sleep 30 & echo done"], carrier)
        check("a child that keeps the pipes does not hold the end up by %s" % carrier,
              s.out == b"done\n" and s.code() == 0 and time.time() - begin < 4, bytes(s.out), time.time() - begin)
        s = run(["sh", "-c", "(sleep 0.3; echo late) & echo early"], carrier)
        check("what comes within the drain time comes by %s" % carrier, s.out == b"early\nlate\n", bytes(s.out))
    run(["sh", "-c", "pkill sleep || killall sleep"])


def terminals():
    for carrier, version in CARRIERS:
        s = Session(exec_url(SOCK, MAIN, ["sh", "-c", "stty size; echo $TERM; tty"], tty=True), carrier, tty=True)
        s.resize(33, 77)
        s.run()
        check("a terminal has its size from the beginning, and TERM, by %s" % carrier,
              s.out.split(b"\r\n")[:2] == [b"33 77", b"xterm"] and b"/dev/pts/" in s.out, bytes(s.out))
        s = Session(exec_url(SOCK, MAIN, ["sh"], stdin=True, tty=True), carrier, stdin=True, tty=True)
        s.resize(24, 80)
        s.until(b"#")
        s.resize(50, 132)
        s.send(b"stty size; exit 5\n")
        s.run()
        check("a terminal follows its client by %s" % carrier, b"50 132" in s.out and s.code() == 5, bytes(s.out), bytes(s.status))
        s = Session(exec_url(SOCK, MAIN, ["tty"], tty=True), carrier, tty=True)
        s.run()
        check("a terminal of a client that tells no size by %s" % carrier, b"/dev/pts/" in s.out and s.code() == 0, bytes(s.out))
    s = Session(exec_url(SOCK, MAIN, ["sh", "-c", "stty raw -echo; head -c 200000 | md5sum"], stdin=True, tty=True), stdin=True, tty=True)
    s.resize(24, 80)
    time.sleep(0.5)
    text = (b"0123456789abcdef" * 12500)
    threading.Thread(target=lambda: s.send(text)).start()
    s.run()
    check("200 kB typed into a terminal", s.out.split()[:1] == [hashlib.md5(text).hexdigest().encode()], bytes(s.out))


def refused(url, *args, **more):
    try:
        connect(url, *args, **more)[0].close()
        return 101
    except Refused as r:
        return r.status
    except (Closed, ConnectionError):
        return 0


SPDY_HEADERS = [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1"), ("X-Stream-Protocol-Version", "v4.channel.k8s.io")]
WS_HEADERS = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")]


def handshakes():
    def url():
        return exec_url(SOCK, MAIN, ["true"])
    u = url()
    check("the URL is on loopback", re.fullmatch(r"http://127\.0\.0\.1:\d+/exec/[0-9a-f]{32}", u) is not None, u)
    check("a token opens once", (refused(u, SPDY_HEADERS), refused(u, SPDY_HEADERS)) == (101, 404))
    u = url()
    check("a failed upgrade uses it up", (refused(u, []), refused(u, SPDY_HEADERS)) == (400, 404))
    check("a token is of one kind", refused(url().replace("/exec/", "/attach/"), SPDY_HEADERS) == 404)
    check("no token", refused(url()[:-32], SPDY_HEADERS) == 404)
    check("a wrong token", refused(url()[:-1] + "x", SPDY_HEADERS) == 404)
    check("other methods", refused(url(), SPDY_HEADERS, method="PUT") == 405)
    check("GET does, too", refused(url(), SPDY_HEADERS) == 101)
    try:
        connect(url(), SPDY_HEADERS[:2] + [("X-Stream-Protocol-Version", "v9.channel.k8s.io")])
        check("unknown version", False)
    except Refused as r:
        check("a version that nobody knows", r.status == 403 and "v4.channel.k8s.io" in r.headers["x-accepted-stream-protocol-versions"],
              r.status, r.headers)
    s, answer, rest = connect(url(), SPDY_HEADERS[:2] + [("X-Stream-Protocol-Version", "v9.channel.k8s.io, v3.channel.k8s.io"),
                                                          ("X-Stream-Protocol-Version", "v4.channel.k8s.io")])
    check("the client's order counts", answer["x-stream-protocol-version"] == ["v3.channel.k8s.io"], answer)
    s.close()
    check("another version of WebSocket", refused(url(), WS_HEADERS + [("Sec-WebSocket-Version", "8")]) == 426)
    check("a WebSocket without a key", refused(url(), WS_HEADERS[:2] + [("Sec-WebSocket-Version", "13")]) == 400)
    check("a WebSocket protocol that nobody knows",
          refused(url(), WS_HEADERS + [("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Protocol", "chat")]) == 403)
    check("a WebSocket by POST", refused(url(), WS_HEADERS + [("Sec-WebSocket-Version", "13")], method="POST") == 405)


def code_of(function, *args, **more):
    try:
        function(*args, **more)
        return 0
    except RpcError as e:
        return e.code


def rpcs():
    check("tty with stderr is refused", code_of(rpc, SOCK, "Exec", field(1, MAIN) + field(2, "ls") + field(3, True) + field(5, True) +
                                                field(6, True)) == 3)
    check("no stream at all is refused", code_of(exec_url, SOCK, MAIN, ["ls"], stdout=False, stderr=False) == 3)
    check("no id is refused", code_of(exec_url, SOCK, "", ["ls"]) == 3)
    check("no command is refused", code_of(exec_url, SOCK, MAIN, []) == 3)
    check("an unknown container is not found", code_of(exec_url, SOCK, "nosuch", ["ls"]) == 5)
    check("attach: tty with stderr is refused", code_of(rpc, SOCK, "Attach", field(1, MAIN) + field(3, True) + field(5, True)) == 3)
    check("attach: an unknown container is not found", code_of(attach_url, SOCK, "nosuch") == 5)
    check("port-forward: an unknown pod is not found", code_of(forward_url, SOCK, "nosuch") == 5)
    check("port-forward: no port 0", code_of(forward_url, SOCK, POD, [0]) == 3)


def hundred():
    sessions, lock = [], threading.Lock()

    def one(i):
        carrier = "spdy" if i % 2 else "websocket"
        s = Session(exec_url(SOCK, MAIN, ["cat"], stdin=True), carrier, stdin=True)
        s.send(b"hello %d\n" % i)
        s.until(b"hello %d\n" % i)
        with lock:
            sessions.append((i, s))
    threads = [threading.Thread(target=one, args=(i,)) for i in range(100)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    check("100 sessions at once", len(sessions) == 100, len(sessions))
    count = run(["sh", "-c", "ps -o args | grep -c '^cat$'"]).out.strip()
    check("all of them run", count == b"100", count)
    good = 0
    for i, s in sessions:
        s.send(b"bye\n")
        s.end_input()
        s.run()
        good += s.out == b"hello %d\nbye\n" % i and s.code() == 0
    check("each has its own bytes and its own end", good == 100, good)


def garbage():
    for headers in (SPDY_HEADERS, WS_HEADERS + [("Sec-WebSocket-Version", "13")]):
        name = headers[1][1]
        bad_frames = {
            "SPDY/3.1": (b"\x80\x02\x00\x01" + b"\0" * 4, b"\x80\x03\x00\x01\x00\xff\xff\xff" + b"x" * 100,
                         b"\x80\x03\x00\x01\x00\x00\x00\x0b" + b"\0\0\0\1" + b"\0" * 7, b"\x80\x03\x00\x03\x00\x00\x00\x01x",
                         b"\x80\x03\x00\x01\x00\x00\x00\x16\0\0\0\1" + b"\0" * 6 + os.urandom(12)),
            "websocket": (b"\x82\x05hello", b"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xffaaaa", b"\x09\x80aaaa", b"\x89\xfe\x00\x80aaaa",
                          b"\xf2\x80aaaa", b"\x83\x80aaaa", b"\x80\x80aaaa"),
        }[name]
        for bad in bad_frames:
            s, answer, rest = connect(exec_url(SOCK, MAIN, ["cat"], stdin=True), headers)
            s.settimeout(5)
            try:
                s.sendall(bad)
                while s.recv(65536):
                    pass
                closed = True
            except ConnectionError:
                closed = True
            except socket.timeout:
                closed = False
            s.close()
            check("%s: %r... is refused" % (name, bad[:10]), closed)
        s, answer, rest = connect(exec_url(SOCK, MAIN, ["cat"], stdin=True), headers)
        s.sendall(os.urandom(100000))
        s.close()
    s = Session(exec_url(SOCK, MAIN, ["cat"], stdin=True), stdin=True)
    s.spdy.data(99, b"to nobody")
    s.spdy.ping(7)
    frames = [s.spdy.frame() for _ in range(6)]
    check("SPDY: data for a stream that is not open is answered by a reset", ("reset", 99, struct.pack(">I", 2)) in frames, frames)
    check("SPDY: a ping is answered", any(f[0] == "ping" and f[1] == 7 for f in frames), frames)
    s.send(b"still here\n")
    s.until(b"still here\n")
    s.end_input()
    check("and the session goes on", s.run().code() == 0)
    s = Session(exec_url(SOCK, MAIN, ["cat"], stdin=True), "websocket", stdin=True)
    s.ws.frame(2, b"\0frag", fin=False)
    s.ws.frame(9, b"ping")
    s.ws.frame(0, b"mented", fin=False)
    s.ws.frame(0, b"\n")
    s.until(b"fragmented\n")
    check("WebSocket: fragments are joined, a ping between them is answered", s.ws.pongs == 1, s.ws.pongs)
    s.close()


def attach():
    for carrier, version in CARRIERS:
        a = Session(attach_url(SOCK, OPEN, stdin=True), carrier, stdin=True)
        b = Session(attach_url(SOCK, OPEN), carrier)
        time.sleep(0.5)
        a.send(b"echo from $((40+2)); echo problem >&2\n")
        a.until(b"from 42\n").until(b"problem\n", "err")
        b.until(b"from 42\n").until(b"problem\n", "err")
        check("two who are attached see the same by %s" % carrier, True)
        a.end_input()
        a.close()
        c = Session(attach_url(SOCK, OPEN, stdin=True), carrier, stdin=True)
        time.sleep(0.3)
        c.send(b"echo again\n")
        c.until(b"again\n")
        check("stdin stays open for the next by %s" % carrier, b"from 42" not in c.out)
        b.close()
        c.close()
        t = Session(attach_url(SOCK, TTY, stdin=True, tty=True), carrier, stdin=True, tty=True)
        t.resize(29, 91)
        time.sleep(0.5)
        t.send(b"stty size\n")
        t.until(b"29 91")
        check("attach to a terminal, with its size, by %s" % carrier, True)
        t.cut()
    t = Session(attach_url(SOCK, TTY, stdin=True, tty=True), stdin=True, tty=True)
    t.resize(10, 20)
    time.sleep(0.3)
    t.send(b"echo ali''ve\n")
    t.until(b"alive")
    check("a terminal outlives a client that was cut off", True)
    t.close()
    o = Session(attach_url(SOCK, ONCE, stdin=True), stdin=True)
    time.sleep(0.3)
    o.send(b"echo once; exit 3\n")
    o.end_input()
    o.run()
    check("stdin_once: the end of stdin ends the container, and with it the session", o.out == b"once\n" and o.code() == 0, bytes(o.out))
    check("attach to what has ended is refused", until(3, lambda: code_of(attach_url, SOCK, ONCE) == 9))


def attach_slow():
    fast, slow = Session(attach_url(SOCK, OPEN, stdin=True), stdin=True), Session(attach_url(SOCK, OPEN), receive_buffer=4096)
    time.sleep(0.3)
    begin = time.time()
    fast.send(b"seq 1 400000; echo all of it\n")
    fast.until(b"all of it\n")
    check("one who does not read holds nobody up: %.1f s" % (time.time() - begin), time.time() - begin < 20)
    check("the other gets everything", fast.out.count(b"\n") == 400001, fast.out.count(b"\n"))
    slow.close()
    fast.close()


SERVER = r"""
import socket, struct, sys, threading
mode, family = sys.argv[1], socket.AF_INET6 if sys.argv[2] == "6" else socket.AF_INET
l = socket.socket(family); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if family == socket.AF_INET6: l.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
l.bind(("::1" if sys.argv[2] == "6" else "127.0.0.1", int(sys.argv[3]))); l.listen(64)
print("ready", flush=True)
def serve(c):
    if mode == "echo":
        while True:
            d = c.recv(65536)
            if not d: break
            c.sendall(d)
    elif mode == "reset":
        d = c.recv(100)
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif mode == "gather":
        n = 0
        while True:
            d = c.recv(65536)
            if not d: break
            n += len(d)
        c.sendall(b"got %d" % n)
    elif mode == "send":
        for _ in range(200): c.sendall(b"x" * 100000)
    c.close()
while True:
    c, _ = l.accept()
    threading.Thread(target=serve, args=(c,), daemon=True).start()
"""


class Server:
    """In the network namespace of the pod (pid) or the node's."""
    def __init__(self, mode, family, port, pid=MAIN_PID):
        enter = ["nsenter", "--net=/proc/%s/ns/net" % pid] if pid else []
        self.p = subprocess.Popen(enter + ["python3", "-c", SERVER, mode, str(family), str(port)], stdout=subprocess.PIPE)
        assert self.p.stdout.readline() == b"ready\n"

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.p.kill()
        self.p.wait()


def forward():
    for tunnel in (False, True):
        name = "tunnel" if tunnel else "SPDY"
        with Server("echo", 4, 7001), Server("reset", 4, 7002), Server("gather", 4, 7003), Server("send", 4, 7004), Server("echo", 6, 7006):
            f = Forward(forward_url(SOCK, POD), tunnel)
            p = f.pair(7001)
            p.send(b"hello")
            p.end()
            check("forward by %s: bytes both ways, and both ends" % name, (p.read(), p.ending) == (b"hello", "end") and
                  p.read_error() == b"", p.ending)
            p = f.pair(7003)
            p.send(b"x" * 3000000)
            p.end()
            check("forward by %s: half-closed, the answer still comes" % name, p.read() == b"got 3000000")
            p = f.pair(7004)
            check("forward by %s: 20 MB" % name, len(p.read(60)) == 20000000)
            p = f.pair(7006)
            p.send(b"six")
            p.end()
            check("forward by %s: a server on ::1 alone" % name, p.read() == b"six")
            q, p = f.pair(7001), f.pair(7002)
            p.send(b"now")
            p.read()
            check("forward by %s: a reset is the end of its pair" % name, p.ending == "reset" and p.read_error() == b"", p.ending)
            q.send(b"unharmed")
            q.end()
            check("forward by %s: and of no other" % name, q.read() == b"unharmed")
            p = f.pair(7001)
            p.send(b"next")
            p.end()
            check("forward by %s: the next connection works" % name, p.read() == b"next")
            p = f.pair(7999)
            text = p.read_error()
            p.read()
            check("forward by %s: a port where nobody listens has its reason" % name,
                  b"error forwarding port 7999 to pod" in text and b"refused" in text.lower() and p.ending == "reset", text, p.ending)
            pairs = [f.pair(7001) for _ in range(60)]
            for i, p in enumerate(pairs):
                p.send(b"number %d" % i)
            for p in pairs:
                p.end()
            check("forward by %s: 60 connections at once" % name,
                  all(p.read() == b"number %d" % i for i, p in enumerate(pairs)))
            p = f.pair(7001, request=False)
            p.send(b"old")
            p.end()
            check("forward by %s: a client without request ids" % name, p.read() == b"old")
            check("forward by %s: a bad port is refused" % name, bad_stream(f, streamtype="data", port="0", requestid="z") == "reset" and
                  bad_stream(f, streamtype="what", port="7001", requestid="y") == "reset")
            check("forward by %s: and all goes on" % name, f.alive)
            f.close()
    with Server("echo", 4, 7011, pid=None):
        f = Forward(forward_url(SOCK, HOST_POD))
        p = f.pair(7011)
        p.send(b"host")
        p.end()
        check("forward to a pod of the node's network", p.read() == b"host")
        f.close()


def bad_stream(f, **headers):
    stream = f.spdy.next
    f.queues[stream] = queue.Queue()
    f.spdy.open(**headers)
    return f.queues[stream].get(timeout=10)[0]


def forward_channels():
    with Server("echo", 4, 7021), Server("echo", 4, 7022):
        for version in ("v4.channel.k8s.io", "v4.base64.channel.k8s.io"):
            ws = WebSocket(forward_url(SOCK, POD, [7021, 7022]), [version])
            code = "base64" in version

            def put(channel, data):
                ws.send(b"%d" % channel + base64.b64encode(data) if code else bytes([channel]) + data, code)

            def get():
                m = ws.message()
                return (m[0] - 48, base64.b64decode(m[1:])) if code else (m[0], m[1:])
            first = [get() for _ in range(4)]
            want = [(c, struct.pack("<H", 7021 + c // 2)) for c in range(4)]
            put(0, b"one")
            put(2, b"two")
            got = sorted([get(), get()])
            check("forward by %s: two ports, two channels each" % version, first == want and got == [(0, b"one"), (2, b"two")], first, got)
            ws.close()


def stop_container():
    u = exec_url(SOCK, OPEN, ["sleep", "500"])
    a, s = Session(attach_url(SOCK, OPEN)), Session(u)
    time.sleep(0.5)
    call(SOCK, "StopContainer", field(1, OPEN))
    check("a container that ends takes its execs along", s.run().code() == 137, bytes(s.status))
    check("and those who are attached hear of it", a.run().code() == 0, bytes(a.status))
    check("a URL of before is of no use", str(Session(exec_url(SOCK, MAIN, ["true"])).run().code()) == "0" and code_of(exec_url, SOCK, OPEN, ["ls"]) == 9)


for f in (versions, errors, inputs, slow_reader, client_goes, drain, terminals, handshakes, rpcs, hundred, garbage, attach, attach_slow,
          forward, forward_channels, stop_container):
    if len(sys.argv) < 11 or f.__name__ in sys.argv[10:]:
        begin = time.time()
        case(f)
        print("# %s: %.1f s" % (f.__name__, time.time() - begin), flush=True)
sys.exit(failed != 0)
