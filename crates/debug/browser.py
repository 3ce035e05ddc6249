"""A headless Chromium, driven by its DevTools socket. Needs Chromium and nothing but Python's own library."""
import base64, contextlib, json, os, socket, struct, subprocess, tempfile, time, urllib.parse, urllib.request

OPTIONS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars
--disable-background-networking --disable-component-update --disable-sync --remote-debugging-port=0""".split()


class Tab:
    """A tab of the browser, by its DevTools socket."""

    def __init__(self, url):
        at = urllib.parse.urlparse(url)
        self.socket = socket.create_connection((at.hostname, at.port))
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {at.path} HTTP/1.1\r\nHost: {at.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.file = self.socket.makefile("rb")
        while self.file.readline().strip():
            pass
        self.calls, self.events = 0, []

    def receive(self):
        text = b""
        while True:
            first, length = struct.unpack("!BB", self.file.read(2))
            if length >= 126:
                kind = "!H" if length == 126 else "!Q"
                length, = struct.unpack(kind, self.file.read(struct.calcsize(kind)))
            text += self.file.read(length)
            if first & 0x80:
                return json.loads(text)

    def call(self, method, **params):
        self.calls += 1
        text = json.dumps({"id": self.calls, "method": method, "params": params}).encode()
        mask = os.urandom(4)
        frame = struct.pack("!BBQ", 0x81, 0x80 | 127, len(text)) + mask
        self.socket.sendall(frame + bytes(byte ^ mask[i % 4] for i, byte in enumerate(text)))
        while True:
            answer = self.receive()
            if answer.get("id") == self.calls:
                return answer.get("result", answer)
            self.events.append(answer)

    def value(self, script):
        return self.call("Runtime.evaluate", expression=script)["result"].get("value")

    def screenshot(self, path):
        shot = self.call("Page.captureScreenshot", format="png")
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def errors(self):
        """Prints what the console says, and how much that is."""
        errors = 0
        for event in self.events:
            what, params = event.get("method"), event.get("params", {})
            if what == "Runtime.exceptionThrown":
                print("exception:", params["exceptionDetails"].get("exception", {}).get("description", params))
            elif what == "Runtime.consoleAPICalled":
                print("console:", params["type"], [one.get("value") for one in params["args"]])
            elif what == "Log.entryAdded":
                print("log:", params["entry"]["level"], params["entry"]["text"], params["entry"].get("url", ""))
            else:
                continue
            errors += 1
        return errors


def find(folder):
    port_file = os.path.join(folder, "DevToolsActivePort")
    while not os.path.exists(port_file) or len(open(port_file).read().split()) < 2:
        time.sleep(0.05)
    port = open(port_file).read().split()[0]
    tabs = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json"))
    return Tab(next(one["webSocketDebuggerUrl"] for one in tabs if one["type"] == "page"))


@contextlib.contextmanager
def tab(width, height, scheme="light"):
    """A browser with one tab of that size, until the end of the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = subprocess.Popen(["chromium", *OPTIONS, f"--user-data-dir={folder}", "about:blank"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            tab = find(folder)
            for domain in ("Page", "Runtime", "Log"):
                tab.call(domain + ".enable")
            tab.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                     mobile=width < 600)
            tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            yield tab
        finally:
            browser.kill()
            browser.wait()
