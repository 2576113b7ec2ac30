#!/usr/bin/env python3
"""registry.py - purpose: an OCI distribution registry for tests: serves OCI layouts from loopback, and misbehaves on demand.

    registry.py --port-file FILE [--port N] [--tls CERT KEY] [--log FILE] [--auth basic|bearer] [--user U:P] NAME=LAYOUT-DIR...

NAME is a repository; its tags are the org.opencontainers.image.ref.name annotations of LAYOUT-DIR/index.json, and "latest"
is the first entry. A fault is set with POST /fault?... and stays until POST /fault (empty); all are query parameters:

    match=REGEX   only paths that match (default: all under /v2/)
    kind=hang | cut | digest | truncate | slow | garbage | redirect | long | status | nohead
    at=N          cut, hang: after N bytes of the body
    times=N       only the next N matching requests
    code=N        status: answer with this code;  after=S: Retry-After
    to=URL        redirect: where to ("loop": to itself)
    norange=1     ignore Range headers
GET /log returns one line per request: METHOD PATH RANGE AUTH NS.  Standard library only.
"""
import argparse, base64, hashlib, http.server, json, os, re, ssl, sys, threading, time
from urllib.parse import parse_qs, urlsplit

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--port-file", required=True)
parser.add_argument("--tls", nargs=2)
parser.add_argument("--auth", choices=["basic", "bearer"])
parser.add_argument("--user", default="")
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("repositories", nargs="*")
options = parser.parse_args()

lock = threading.Lock()
log, faults, tokens = [], [], set()
repositories = dict(r.split("=", 1) for r in options.repositories)


def blob_path(name, digest):
    if name not in repositories or not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        return None
    path = os.path.join(repositories[name], "blobs", "sha256", digest[7:])
    return path if os.path.isfile(path) else None


def manifest_of(name, target):
    """(bytes, media type) of a manifest by tag or digest."""
    if name not in repositories:
        return None
    index_path = os.path.join(repositories[name], "index.json")
    with open(index_path) as f:
        index = json.load(f)
    types = {d["digest"]: d.get("mediaType") for d in index["manifests"]}
    if not target.startswith("sha256:"):
        for i, d in enumerate(index["manifests"]):
            tag = d.get("annotations", {}).get("org.opencontainers.image.ref.name", "")
            if tag == target or (target == "latest" and i == 0):
                target = d["digest"]
                break
    path = blob_path(name, target)
    if not path:
        return None
    with open(path, "rb") as f:
        data = f.read()
    try:
        own = json.loads(data).get("mediaType")
    except ValueError:
        own = None
    return data, types.get(target) or own or "application/vnd.oci.image.manifest.v1+json"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def error(self, status, code, message, **headers):
        body = json.dumps({"errors": [{"code": code, "message": message}]}).encode()
        self.answer(status, body, Content_Type="application/json", **headers)

    def own_url(self):
        scheme = "https" if options.tls else "http"
        return "%s://%s" % (scheme, self.headers.get("Host", "127.0.0.1"))

    def authorized(self):
        given = self.headers.get("Authorization", "")
        if not options.auth:
            return True
        if options.auth == "basic":
            wanted = "Basic " + base64.b64encode(options.user.encode()).decode()
            if given == wanted:
                return True
            self.error(401, "UNAUTHORIZED", "log in", WWW_Authenticate='Basic realm="test registry"')
            return False
        if given.startswith("Bearer ") and given[7:] in tokens:
            return True
        self.error(401, "UNAUTHORIZED", "authentication required",
                   WWW_Authenticate='Bearer realm="%s/token",service="test, registry",scope="repository:%s:pull"'
                   % (self.own_url(), self.path.split("/manifests/")[0].split("/blobs/")[0][4:]))
        return False

    def token(self, query):
        if options.user:
            wanted = "Basic " + base64.b64encode(options.user.encode()).decode()
            if self.headers.get("Authorization", "") != wanted:
                return self.error(401, "UNAUTHORIZED", "wrong password")
        if not query.get("service") or not query.get("scope"):
            return self.error(400, "BAD", "service or scope missing")
        token = hashlib.sha256(os.urandom(16)).hexdigest()
        tokens.add(token)
        self.answer(200, json.dumps({"token": token, "expires_in": 300}).encode(), Content_Type="application/json")

    def fault_for(self, path):
        with lock:
            for f in faults:
                if re.search(f.get("match", "^/v2/"), path) and f.get("times", 1) != 0:
                    if "times" in f:
                        f["times"] -= 1
                    return f
        return None

    def send_body(self, data, media_type, fault, extra):
        kind = fault.get("kind") if fault else None
        start, status = 0, 200
        m = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if m and not (fault and fault.get("norange")):
            start, status = int(m.group(1)), 206
            extra["Content_Range"] = "bytes %d-%d/%d" % (start, len(data) - 1, len(data))
        total = data
        if kind == "digest":
            total = data[:-1] + bytes([data[-1] ^ 1])
        elif kind == "garbage":
            total = os.urandom(len(data))
        elif kind == "truncate":
            total = data[: len(data) // 2]
        elif kind == "long":
            total = data + b"more"
        body = total[start:]
        self.send_response(status)
        for key, value in dict(extra, Content_Type=media_type, Content_Length=str(len(body))).items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        if self.command == "HEAD":
            return
        at = int(fault.get("at", len(body) // 2)) if fault else 0
        if kind in ("cut", "hang"):
            self.wfile.write(body[:at])
            self.wfile.flush()
            if kind == "hang":
                time.sleep(float(fault.get("seconds", 30)))
            self.close_connection = True
            self.connection.close()
            return
        if kind == "slow":
            for i in range(0, len(body), 16384):
                self.wfile.write(body[i : i + 16384])
                self.wfile.flush()
                time.sleep(0.02)
            return
        self.wfile.write(body)

    def handle_any(self):
        url = urlsplit(self.path)
        query = {k: v[0] for k, v in parse_qs(url.query, keep_blank_values=True).items()}
        length = int(self.headers.get("Content-Length") or 0)
        if length:
            self.rfile.read(length)
        if url.path == "/fault":
            with lock:
                faults.clear()
                if query:
                    for key in ("times", "code"):
                        if key in query:
                            query[key] = int(query[key])
                    faults.append(query)
            return self.answer(200)
        if url.path == "/log":
            with lock:
                text = "".join(log)
                if query.get("clear") is not None:
                    log.clear()
            return self.answer(200, text.encode())
        with lock:
            log.append("%s %s range=%s auth=%s ns=%s\n" % (self.command, url.path, self.headers.get("Range", "-"),
                       self.headers.get("Authorization", "-").split(" ")[0], query.get("ns", "-")))
        if url.path == "/token":
            return self.token(query)
        fault = self.fault_for(url.path)
        kind = fault.get("kind") if fault else None
        if kind == "status":
            extra = {"Retry_After": str(fault["after"])} if "after" in fault else {}
            return self.error(fault["code"], "FAULT", "as you wished", **extra)
        if kind == "nohead" and self.command == "HEAD":
            return self.error(405, "UNSUPPORTED", "no HEAD here")
        if kind == "hang" and "at" not in fault:
            time.sleep(float(fault.get("seconds", 30)))
            self.close_connection = True
            return
        if not self.authorized():
            return
        if kind == "redirect":
            to = self.path if fault["to"] == "loop" else fault["to"] + url.path
            return self.answer(307, b"", Location=to)
        m = re.fullmatch(r"/v2/(.+)/manifests/([^/]+)", url.path)
        if m:
            found = manifest_of(m.group(1), m.group(2))
            if not found:
                return self.error(404, "MANIFEST_UNKNOWN", "manifest unknown")
            extra = {"Docker_Content_Digest": "sha256:" + hashlib.sha256(found[0]).hexdigest()}
            return self.send_body(found[0], found[1], fault, extra)
        m = re.fullmatch(r"/v2/(.+)/blobs/([^/]+)", url.path)
        path = blob_path(m.group(1), m.group(2)) if m else None
        if path:
            with open(path, "rb") as f:
                return self.send_body(f.read(), "application/octet-stream", fault, {})
        if url.path in ("/v2", "/v2/"):
            return self.answer(200, b"{}")
        self.error(404, "BLOB_UNKNOWN", "blob unknown")

    def run(self):
        try:
            self.handle_any()
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    do_GET = do_HEAD = do_POST = run


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


server = Server((options.host, options.port), Handler)
if options.tls:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*options.tls)
    server.socket = context.wrap_socket(server.socket, server_side=True)
with open(options.port_file + ".tmp", "w") as f:
    f.write(str(server.server_address[1]))
os.rename(options.port_file + ".tmp", options.port_file)
server.serve_forever()
