"""A page in a real browser (Debian's chromium-headless-shell) reads a live feed, and is kept out where its origin is not allowed."""
import json, queue, subprocess, tempfile

import web

BROWSER = "chromium-headless-shell"
PAGE = """<!doctype html><meta charset="utf-8"><script>
const feed = new WebSocket("ws://%(http)s/v1/ws/topics/%(topic)s", ["rustqueue.live.v1"]);
feed.binaryType = "arraybuffer";
let chain = Promise.resolve();
const tell = what => chain = chain.then(() => fetch("/said", {method: "POST", body: JSON.stringify(what)}));
const hex = bytes => Array.from(bytes, b => b.toString(16).padStart(2, "0")).join("");
feed.onmessage = event => {
  if (typeof event.data === "string") return tell({control: JSON.parse(event.data), protocol: feed.protocol});
  const bytes = new Uint8Array(event.data);
  tell({magic: new TextDecoder().decode(bytes.slice(0, 4)), header: hex(bytes.slice(4, 8)), body: new TextDecoder().decode(bytes.slice(24))});
  if (bytes.length === 24 + 5) feed.send("not allowed");
};
feed.onclose = event => tell({closed: event.code, reason: event.reason});
</script>"""


class Site(web.Site):
    """Serves the page and hears what it says; the origin of the page is http://HOST:port."""

    def __init__(self, topic):
        self.said = queue.Queue()
        self.topic, self.page = topic, b""
        super().__init__(self.answer)

    def answer(self, method, path, query, body):
        if method == "POST":
            self.said.put(json.loads(body))
            return 200, b"", "text/plain"
        return 200, self.page if path == "/" else b"", "text/html"

    def point_at(self, broker_http):
        self.page = (PAGE % {"http": broker_http, "topic": self.topic}).encode()

    def hear(self, seconds=240):
        try:
            return self.said.get(timeout=seconds)
        except queue.Empty:
            return {"nothing": seconds}


class Browser:
    def __init__(self, url):
        self.profile = tempfile.TemporaryDirectory(prefix="rustqueue-browser-", ignore_cleanup_errors=True)
        self.log = tempfile.TemporaryFile()
        # The remote port keeps the shell open until it is ended here.
        argv = [BROWSER, "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
                "--user-data-dir=" + self.profile.name, "--remote-debugging-port=0", url]
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def output(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")[-600:]

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.profile.cleanup()
        self.log.close()


def cases(site, server, topic, publish):
    """Yields (name, why it failed or None). The Broker allows the page's origin by its address, not by its name."""
    http = "127.0.0.1:%d" % server.http

    def check(name, got, **want):
        wrong = [key for key in want if got.get(key) != want[key]]
        return name, ("%s instead of %s" % (got, want) if wrong else None)

    browser = Browser("http://127.0.0.1:%d/" % site.port)
    try:
        first = site.hear()
        name, why = check("ready", first, protocol="rustqueue.live.v1")
        control = first.get("control", {})
        yield name, why or (None if control.get("type") == "ready" and control.get("topic") == topic else str(first)) or None
        if why:
            yield "browser output", browser.output()
            return
        publish(http, topic, "für alle".encode())
        yield check("a message", site.hear(), magic="RQW1", header="00180001", body="für alle")
        publish(http, topic, b"hello")
        yield check("the next message", site.hear(), magic="RQW1", header="00180001", body="hello")
        yield check("what it must not send", site.hear().get("control", {}), type="error", code="E_WS_CONTROL")
        yield check("the close", site.hear(), closed=1008, reason="E_WS_CONTROL")
    finally:
        browser.close()
    stranger = Browser("http://localhost:%d/" % site.port)
    try:
        yield check("a foreign origin is kept out", site.hear(), closed=1006, reason="")
    finally:
        stranger.close()
