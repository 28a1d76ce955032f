"""/metrics under the eyes of Debian's prometheus: promtool's lint, and a real server that scrapes it."""
import json, os, re, subprocess, time, urllib.parse, urllib.request

# Names that are contract although promtool dislikes them: gauges that end in _total (page 31 section 7).
KNOWN = {"rustqueue_topic_messages_total", "rustqueue_channel_depth_total", "rustqueue_channel_in_flight_total",
         "rustqueue_channel_deferred_total", "rustqueue_channel_ack_gap_total"}
CONFIG = """global:
  scrape_interval: 1s
scrape_configs:
  - job_name: rustqueue
    static_configs: [{targets: ["%s"]}]
"""
SERIES = ["rustqueue_publish_messages_total", "rustqueue_finished_messages_total", "rustqueue_topics",
          'rustqueue_storage_fsync_duration_seconds_bucket{le="+Inf"}', 'rustqueue_channel_depth{topic="watched",channel="c"}',
          "rustqueue_websocket_messages_total", "rustqueue_disk_available_bytes"]


def lint(text):
    """What `promtool check metrics` says beyond the known names."""
    done = subprocess.run(["promtool", "check", "metrics"], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    said = done.stdout.decode().splitlines()
    return [line for line in said if line.strip() and not (line.split()[0] in KNOWN and 'should not have "_total" suffix' in line)]


class Prometheus:
    def __init__(self, directory, target, port):
        self.url = "http://127.0.0.1:%d" % port
        path = os.path.join(directory, "prometheus.yml")
        with open(path, "w") as file:
            file.write(CONFIG % target)
        self.log = os.path.join(directory, "prometheus.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["prometheus", "--config.file=" + path, "--storage.tsdb.path=" + os.path.join(directory, "tsdb"),
                                             "--web.listen-address=127.0.0.1:%d" % port], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def query(self, text):
        with urllib.request.urlopen(self.url + "/api/v1/query?query=" + urllib.parse.quote(text), timeout=60) as answer:
            return json.load(answer)["data"]["result"]

    def wait_for(self, text, seconds=240):
        """The value of a series once it is there; None when it never came."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            try:
                result = self.query(text)
                if result:
                    return float(result[0]["value"][1])
            except OSError:
                pass
            time.sleep(0.2)
        return None

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def tail(self):
        with open(self.log, errors="replace") as file:
            return file.read()[-500:]


def cases(directory, server, port):
    status, text = server.get("/metrics")
    yield "the scrape", None if status == 200 else str(status)
    said = lint(text)
    yield "promtool check metrics", "; ".join(said[:8]) or None
    broken = re.sub(rb"# TYPE rustqueue_topics gauge", b"# TYPE rustqueue_topics nonsense", text)
    yield "promtool notices a broken scrape", None if lint(broken) else "it said nothing"
    prometheus = Prometheus(directory, "127.0.0.1:%d" % server.http, port)
    try:
        up = prometheus.wait_for('up{job="rustqueue"} == 1')
        yield "prometheus scrapes", None if up == 1 else prometheus.tail()
        for series in SERIES if up == 1 else []:
            value = prometheus.wait_for(series)
            yield "series " + series, None if value is not None else "not there"
        if up == 1:
            families = len(set(re.findall(rb"^# TYPE (\S+)", text, re.M)))
            taken = prometheus.wait_for('scrape_samples_scraped{job="rustqueue"} > %d' % families)      # a scrape that was late has none
            yield "all families were taken", None if taken is not None else "never more than %d samples" % families
    finally:
        prometheus.end()
