# streaming.py - purpose: clients of exec, attach and port-forward over SPDY/3.1 and WebSocket, with the standard library
# alone: the other side of runtime-lite/stream, written from the protocols. For tests.
import base64, hashlib, json, os, queue, socket, ssl, struct, subprocess, threading, time, urllib.parse, zlib

NAMES = """options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow
authorization cache-control connection content-base content-encoding content-language content-length content-location
content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match if-range
if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after
server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get status""".split()
DICTIONARY = b"".join(struct.pack(">I", len(n)) + n.encode() for n in NAMES +
    ["200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin"]) + (
    b"100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    b"203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    b"404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    b"Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    b"chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    b"publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.")
assert len(DICTIONARY) == 1423


class Refused(Exception):
    """An answer that is no 101: status, headers, body."""
    def __init__(self, status, headers, body):
        super().__init__("HTTP %d: %s" % (status, body.decode(errors="replace").strip()))
        self.status, self.headers, self.body = status, headers, body


class Closed(Exception):
    pass


def connect(url, headers, method="GET", receive_buffer=0):
    """An upgraded connection: socket, headers of the answer (lower case, lists), what came after them."""
    path, _, rest = url.partition("|") if url.startswith("/") else ("", "", url) # "/run/x.sock|http://localhost/..."
    u = urllib.parse.urlsplit(rest)
    s = socket.socket(socket.AF_UNIX if path else socket.AF_INET6 if ":" in u.hostname else socket.AF_INET)
    if receive_buffer:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    s.connect(path or (u.hostname, u.port))
    if u.scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        s = context.wrap_socket(s)
    target = u.path + ("?" + u.query if u.query else "")
    s.sendall(("%s %s HTTP/1.1\r\nHost: %s\r\n" % (method, target, u.netloc) +
               "".join("%s: %s\r\n" % h for h in headers) + "\r\n").encode())
    data = b""
    while b"\r\n\r\n" not in data:
        more = s.recv(65536)
        if not more:
            raise Closed("before the answer: %r" % data)
        data += more
    head, rest = data.split(b"\r\n\r\n", 1)
    lines = head.decode().split("\r\n")
    if len(lines[0].split()) < 2:
        raise Closed("no status line: %r" % data)
    status, answer = int(lines[0].split()[1]), {}
    for line in lines[1:]:
        name, value = line.split(":", 1)
        answer.setdefault(name.lower(), []).append(value.strip())
    if status != 101:
        left = int(answer.get("content-length", ["0"])[0])
        while len(rest) < left:
            rest += s.recv(65536)
        s.close()
        raise Refused(status, answer, rest)
    return s, answer, rest


class Bytes:
    """A socket with what was read ahead."""
    def __init__(self, s, rest=b""):
        self.s, self.rest, self.lock = s, rest, threading.Lock()

    def exactly(self, n):
        parts, have = [self.rest[:n]], min(n, len(self.rest))
        self.rest = self.rest[n:]
        while have < n:
            more = self.s.recv(min(n - have, 65536))
            if not more:
                raise Closed()
            parts.append(more)
            have += len(more)
        return b"".join(parts)

    def send(self, data):
        with self.lock:
            self.s.sendall(data)

    def close(self):
        self.s.close()


class WebSocket:
    def __init__(self, url, protocols, receive_buffer=0, more=()):
        key = base64.b64encode(os.urandom(16)).decode()
        headers = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
                   ("Sec-WebSocket-Key", key)] + [("Sec-WebSocket-Protocol", p) for p in protocols] + list(more)
        s, answer, rest = connect(url, headers, receive_buffer=receive_buffer)
        want = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        assert answer["sec-websocket-accept"] == [want], answer
        self.protocol = answer.get("sec-websocket-protocol", [""])[0]
        self.b, self.pongs, self.code = Bytes(s, rest), 0, None

    def frame(self, opcode, data, fin=True, mask=True):
        head = bytes([(0x80 if fin else 0) | opcode])
        bit = 0x80 if mask else 0
        if len(data) < 126:
            head += bytes([bit | len(data)])
        elif len(data) < 65536:
            head += bytes([bit | 126]) + struct.pack(">H", len(data))
        else:
            head += bytes([bit | 127]) + struct.pack(">Q", len(data))
        if mask:
            key = os.urandom(4)
            pad = (key * (len(data) // 4 + 1))[:len(data)]
            data = key + (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")).to_bytes(len(data), "big")
        self.b.send(head + data)

    def send(self, data, text=False):
        self.frame(1 if text else 2, data)

    def message(self):
        """The next message; None: closed."""
        whole = b""
        while True:
            first, second = self.b.exactly(2)
            assert not second & 0x80, "a server's frame is masked"
            n = second & 0x7f
            if n == 126:
                n = struct.unpack(">H", self.b.exactly(2))[0]
            elif n == 127:
                n = struct.unpack(">Q", self.b.exactly(8))[0]
            data, opcode = self.b.exactly(n), first & 15
            if opcode == 9:
                self.frame(10, data)
            elif opcode == 10:
                self.pongs += 1
            elif opcode == 8:
                self.code = struct.unpack(">H", data[:2])[0] if len(data) >= 2 else 1005
                return None
            else:
                whole += data
                if first & 0x80:
                    return whole

    def close(self):
        try:
            self.frame(8, struct.pack(">H", 1000))
        except OSError:
            pass
        self.b.close()


class Spdy:
    """Frames over anything with exactly() and send()."""
    def __init__(self, carrier):
        self.b, self.next, self.pongs = carrier, 1, 0
        self.out = zlib.compressobj(level=9, zdict=DICTIONARY)
        self.inn = zlib.decompressobj(zdict=DICTIONARY)
        self.lock = threading.Lock()

    def open(self, **headers):
        with self.lock:
            stream, self.next = self.next, self.next + 2
            block = struct.pack(">I", len(headers))
            for k, v in headers.items():
                block += struct.pack(">I", len(k)) + k.encode() + struct.pack(">I", len(v)) + v.encode()
            block = self.out.compress(block) + self.out.flush(zlib.Z_SYNC_FLUSH)
            body = struct.pack(">IIBB", stream, 0, 0, 0) + block
            self.b.send(struct.pack(">HHI", 0x8003, 1, len(body)) + body)
        return stream

    def data(self, stream, data, fin=False):
        for at in range(0, max(len(data), 1), 32768):
            piece = data[at:at + 32768]
            self.b.send(struct.pack(">II", stream, len(piece)) + piece)
        if fin:
            self.b.send(struct.pack(">II", stream, 0x01000000))

    def reset(self, stream, status=5):
        self.b.send(struct.pack(">HHIII", 0x8003, 3, 8, stream, status))

    def ping(self, number):
        self.b.send(struct.pack(">HHII", 0x8003, 6, 4, number))

    def frame(self):
        """kind ('data', 'end', 'reply', 'reset', 'ping', 'goaway', ...), stream, bytes."""
        a, b = struct.unpack(">II", self.b.exactly(8))
        flags, n = b >> 24, b & 0xffffff
        body = self.b.exactly(n)
        if not a & 0x80000000:
            return ("end" if flags & 1 else "data"), a, body
        kind = a & 0xffff
        if kind in (1, 2, 8):
            self.inn.decompress(body[10 if kind == 1 else 4:])
        stream = struct.unpack(">I", body[:4])[0] if len(body) >= 4 else 0
        return {1: "open", 2: "reply", 3: "reset", 6: "ping", 7: "goaway"}.get(kind, str(kind)), stream, body[4:]


class Tunnel:
    """SPDY's bytes in WebSocket messages."""
    def __init__(self, ws):
        self.ws, self.rest = ws, b""

    def exactly(self, n):
        while len(self.rest) < n:
            more = self.ws.message()
            if more is None:
                raise Closed()
            self.rest += more
        data, self.rest = self.rest[:n], self.rest[n:]
        return data

    def send(self, data):
        self.ws.send(data)

    def close(self):
        self.ws.close()


class Session:
    """An exec or attach. out, err, status (bytes) grow as they come; run() reads to the end."""
    def __init__(self, url, carrier="spdy", version=None, stdin=False, stdout=True, stderr=True, tty=False, method="POST",
                 receive_buffer=0, more=()):
        self.out, self.err, self.status, self.carrier = bytearray(), bytearray(), bytearray(), carrier
        self.ended, self.pause, self.on_output, self.replies = set(), 0, None, set()
        if carrier == "spdy":
            version = "v4.channel.k8s.io" if version is None else version
            headers = [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1")]
            headers += [("X-Stream-Protocol-Version", v) for v in ([version] if version else [])] + list(more)
            s, answer, rest = connect(url, headers, method, receive_buffer)
            self.protocol = answer.get("x-stream-protocol-version", [""])[0]
            self.spdy = Spdy(Bytes(s, rest))
            self.ids = {}
            for name, wanted in (("error", True), ("stdin", stdin), ("stdout", stdout), ("stderr", stderr and not tty),
                                 ("resize", tty)):
                if wanted:
                    self.ids[name] = self.spdy.open(streamtype=name)
        else:
            version = "v5.channel.k8s.io" if version is None else version
            self.ws = WebSocket(url, [version] if version else [], receive_buffer, more)
            self.protocol = self.ws.protocol
            self.base64 = "base64" in version

    def put(self, channel, data):
        self.ws.send(b"%d" % channel + base64.b64encode(data) if self.base64 else bytes([channel]) + data, self.base64)

    def send(self, data):
        if self.carrier == "spdy":
            self.spdy.data(self.ids["stdin"], data)
        else:
            for at in range(0, len(data), 32768):
                self.put(0, data[at:at + 32768])

    def end_input(self):
        if self.carrier == "spdy":
            self.spdy.data(self.ids["stdin"], b"", fin=True)
        elif self.protocol.startswith("v5"):
            self.ws.send(bytes([255, 0]))

    def resize(self, rows, columns):
        size = json.dumps({"Width": columns, "Height": rows}).encode() + b"\n"
        if self.carrier == "spdy":
            self.spdy.data(self.ids["resize"], size)
        else:
            self.put(4, size)

    def step(self):
        """One message. False: the end."""
        try:
            if self.carrier == "spdy":
                return self.step_spdy()
            message = self.ws.message()
        except (Closed, ConnectionError):
            return False
        if message is None:
            return False
        if not message:
            return True
        channel, data = message[0], message[1:]
        if self.base64:
            channel, data = channel - 48, base64.b64decode(data)
        self.take({1: self.out, 2: self.err, 3: self.status}[channel], data)
        return True

    def step_spdy(self):
        kind, stream, data = self.spdy.frame()
        names = {v: k for k, v in self.ids.items()}
        if kind in ("data", "end"):
            self.take({"stdout": self.out, "stderr": self.err, "error": self.status}[names[stream]], data)
        if kind == "end":
            self.ended.add(names[stream])
        if kind == "reply":
            self.replies.add(names[stream])
        if kind == "ping":
            self.spdy.pongs += 1
        return kind != "goaway"

    def take(self, where, data):
        where += data
        if self.pause and data:
            time.sleep(self.pause)
        if self.on_output:
            self.on_output(self)

    def run(self):
        while self.step():
            pass
        return self

    def until(self, what, where="out"):
        while what not in getattr(self, where):
            if not self.step():
                raise Closed("%r is not in %r" % (what, bytes(getattr(self, where))[-200:]))
        return self

    def code(self):
        """Exit code; None: no status."""
        if not self.status:
            return None
        status = json.loads(self.status.decode())
        if status.get("status") == "Success":
            return 0
        for cause in status.get("details", {}).get("causes", []):
            if cause.get("reason") == "ExitCode":
                return int(cause["message"])
        return status["message"]

    def close(self):
        if self.carrier == "spdy":
            self.spdy.b.close()
        else:
            self.ws.close()

    def cut(self):
        """Without a good-bye, by a reset."""
        s = (self.spdy.b if self.carrier == "spdy" else self.ws.b).s
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()


class Forward:
    """Port-forward; pair() gives one connection. A thread reads."""
    def __init__(self, url, tunnel=False, more=()):
        if tunnel:
            self.spdy = Spdy(Tunnel(WebSocket(url, ["SPDY/3.1+portforward.k8s.io"], more=more)))
        else:
            s, answer, rest = connect(url, [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1"),
                                            ("X-Stream-Protocol-Version", "portforward.k8s.io")] + list(more), "POST")
            self.spdy = Spdy(Bytes(s, rest))
        self.queues, self.requests, self.alive = {}, 0, True
        self.thread = threading.Thread(target=self.reader, daemon=True)
        self.thread.start()

    def reader(self):
        try:
            while True:
                kind, stream, data = self.spdy.frame()
                if kind == "goaway":
                    break
                if stream in self.queues:
                    self.queues[stream].put((kind, data))
        except (Closed, ConnectionError, OSError):
            pass
        self.alive = False
        for q in list(self.queues.values()):
            q.put(("closed", b""))

    def pair(self, port, request=True):
        headers = {"port": str(port)}
        if request:
            headers["requestid"] = str(self.requests)
        self.requests += 1
        return Pair(self, headers)

    def close(self):
        """Not before the reader has ended: the next connection might get the same descriptor."""
        carrier = self.spdy.b
        s = carrier.ws.b.s if isinstance(carrier, Tunnel) else carrier.s
        try:
            if isinstance(carrier, Tunnel):
                carrier.ws.frame(8, b"")
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.thread.join(10)
        s.close()


class Pair:
    def __init__(self, forward, headers):
        self.f, spdy = forward, forward.spdy
        self.error, self.data = spdy.open(streamtype="error", **headers), None
        forward.queues[self.error] = queue.Queue()
        spdy.data(self.error, b"", fin=True)
        self.data = spdy.next
        forward.queues[self.data] = queue.Queue()
        assert spdy.open(streamtype="data", **headers) == self.data
        self.ending = None

    def send(self, data):
        self.f.spdy.data(self.data, data)

    def end(self):
        self.f.spdy.data(self.data, b"", fin=True)

    def gather(self, stream, timeout=20):
        """All bytes until the stream ends; self.ending says how."""
        parts = []
        while True:
            kind, data = self.f.queues[stream].get(timeout=timeout)
            if kind in ("data", "end"):
                parts.append(data)
            if kind in ("end", "reset", "closed"):
                self.ending = kind
                return b"".join(parts)

    def read(self, timeout=20):
        return self.gather(self.data, timeout)

    def read_error(self, timeout=20):
        return self.gather(self.error, timeout)


# --- CRI, by curl: three calls whose messages are simple

def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, bool):
        return varint(number << 3) + varint(1) if value else b""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value if isinstance(value, bytes) else value.encode()
    return varint(number << 3 | 2) + varint(len(data)) + data


class RpcError(Exception):
    def __init__(self, code, text):
        super().__init__("%d: %s" % (code, text))
        self.code = code


def call(sock, method, message):
    return subprocess.run(["curl", "-s", "--http2-prior-knowledge", "--unix-socket", sock, "-D", "/dev/stderr", "-H", "te: trailers",
                           "-H", "content-type: application/grpc", "--data-binary", "@-"] +
                          ["http://localhost/runtime.v1.RuntimeService/" + method],
                          input=b"\0" + struct.pack(">I", len(message)) + message, capture_output=True)


def rpc(sock, method, message):
    """The first field of the reply, as text."""
    r = call(sock, method, message)
    trailers = dict(line.lower().split(b": ", 1) for line in r.stderr.split(b"\r\n") if b": " in line)
    code = int(trailers.get(b"grpc-status", b"2"))
    if code:
        raise RpcError(code, urllib.parse.unquote(trailers.get(b"grpc-message", b"").decode()))
    body = r.stdout[5:]
    n, at, shift = 0, 1, 0
    while True:
        n |= (body[at] & 127) << shift
        shift += 7
        at += 1
        if not body[at - 1] & 128:
            break
    return body[at:at + n].decode()


def exec_url(sock, container, command, stdin=False, stdout=True, stderr=True, tty=False):
    return rpc(sock, "Exec", field(1, container) + b"".join(field(2, c) for c in command) + field(3, tty) + field(4, stdin) +
               field(5, stdout) + field(6, stderr and not tty))


def attach_url(sock, container, stdin=False, stdout=True, stderr=True, tty=False):
    return rpc(sock, "Attach", field(1, container) + field(2, stdin) + field(3, tty) + field(4, stdout) + field(5, stderr and not tty))


def forward_url(sock, pod, ports=()):
    return rpc(sock, "PortForward", field(1, pod) + (field(2, b"".join(varint(p) for p in ports)) if ports else b""))
