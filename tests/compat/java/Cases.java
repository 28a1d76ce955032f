// Compatibility cases with nsq-j 1.2 against a running NSQ V2 server on this machine.
//
//   Cases cases  --tcp HOST:PORT --http HOST:PORT [--only NAME,...] [--snappy] [--deflate] [--tls-ca F --tls-cert F --tls-key F]
//                [--auth-secret S] [--nsqd]   the key in PKCS#8 form; the last: the server is nsqd, which samples by chance
//   Cases lookup --lookup HOST:PORT --topic T --count N    finds the server by a nsqlookupd, consumes and prints N bodies
//
// One line per case: `ok NAME (seconds)` or `FAIL NAME: why`. All cases run side by side, each on a Topic of its own.
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.sproutsocial.nsq.Client;
import com.sproutsocial.nsq.Config;
import com.sproutsocial.nsq.DirectSubscriber;
import com.sproutsocial.nsq.Message;
import com.sproutsocial.nsq.Publisher;
import com.sproutsocial.nsq.Subscriber;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;

public final class Cases {
    interface Body {
        void run(Case c) throws Exception;
    }

    interface Handler {
        void accept(Message m) throws Exception;
    }

    static final Map<String, String> flags = new HashMap<>();
    static final int PATIENCE = 60;  // seconds; only ends what hangs: a machine may be busy, or stand still for seconds
    static final long pid = ProcessHandle.current().pid();

    static void need(boolean condition, String why) {
        if (!condition) throw new IllegalStateException(why);
    }

    static List<String> bodies(int count) {
        List<String> out = new ArrayList<>();
        for (int i = 0; i < count; i++) out.add(String.format("message %05d", i));
        return out;
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static List<byte[]> all(List<String> texts) {
        List<byte[]> out = new ArrayList<>();
        for (String text : texts) out.add(bytes(text));
        return out;
    }

    static final class Seen {
        final String id, body;
        final int attempts;
        final long at = System.nanoTime();

        Seen(Message m) {
            id = m.getId();
            body = new String(m.getData(), StandardCharsets.UTF_8);
            attempts = m.getAttempts();
        }
    }

    /** What one case works with. */
    static final class Case {
        final String topic;
        final Map<String, List<Seen>> seen = Collections.synchronizedMap(new HashMap<>());
        final List<Publisher> publishers = new ArrayList<>();
        final List<Subscriber> subscribers = new ArrayList<>();

        Case(String name) {
            topic = "java-" + name + "." + pid;
        }

        Config config() {
            Config config = new Config();
            config.setHeartbeatInterval(2000);
            config.setMsgTimeout(20_000);
            config.setOutputBufferTimeout(100);
            config.setFeatureNegotiation(true);
            config.setSnappy(flags.containsKey("snappy"));
            config.setDeflate(flags.containsKey("deflate"));
            config.setTlsV1(flags.containsKey("tls-ca"));
            return config;
        }

        Publisher publisher() {
            Publisher publisher = new Publisher(flags.get("tcp"));
            publisher.setConfig(config());
            publishers.add(publisher);
            return publisher;
        }

        Subscriber subscribe(String channel, int maxInFlight, Config config, Handler handler) throws Exception {
            List<Seen> into = seen.computeIfAbsent(channel, k -> Collections.synchronizedList(new ArrayList<>()));
            JsonObject stats = stats(channel);
            int before = stats == null ? 0 : stats.get("client_count").getAsInt();
            Subscriber subscriber = new DirectSubscriber(1, flags.get("tcp"));
            subscriber.setConfig(config);
            subscriber.setMaxAttempts(Integer.MAX_VALUE);
            subscriber.setMaxFlushDelayMillis(100);  // FIN and TOUCH wait for two seconds otherwise
            subscribers.add(subscriber);
            subscriber.subscribe(topic, channel, maxInFlight, (Message m) -> {
                into.add(new Seen(m));
                try {
                    handler.accept(m);
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            until(channel, "subscribed", s -> s != null && s.get("client_count").getAsInt() > before);
            return subscriber;
        }

        JsonObject document() throws Exception {
            URL url = new URL("http://" + flags.get("http") + "/stats?format=json&topic=" + topic);
            try (InputStream in = url.openStream()) {
                return new JsonParser().parse(new InputStreamReader(in, StandardCharsets.UTF_8)).getAsJsonObject();
            }
        }

        /** nsqd says null for an empty list. */
        static JsonArray rows(JsonObject in, String key) {
            return in.get(key).isJsonNull() ? new JsonArray() : in.getAsJsonArray(key);
        }

        JsonObject stats(String channel) throws Exception {
            for (JsonElement t : rows(document(), "topics"))
                for (JsonElement c : t.getAsJsonObject().getAsJsonArray("channels"))
                    if (t.getAsJsonObject().get("topic_name").getAsString().equals(topic)
                        && c.getAsJsonObject().get("channel_name").getAsString().equals(channel)) return c.getAsJsonObject();
            return null;
        }

        /**
         * The Channel's consumer and the Topic's producer have all that was asked for and nothing else: a client goes on without it when it
         * is refused.
         */
        void granted(String channel) throws Exception {
            List<Boolean> asked = new ArrayList<>();
            for (String flag : Arrays.asList("snappy", "deflate", "tls-ca", "auth-secret")) asked.add(flags.containsKey(flag));
            List<List<Boolean>> consumers = new ArrayList<>(), producers = new ArrayList<>();
            for (JsonElement row : stats(channel).getAsJsonArray("clients")) consumers.add(shown(row.getAsJsonObject()));
            for (JsonElement row : rows(document(), "producers")) {
                JsonElement counts = row.getAsJsonObject().get("pub_counts");
                if (counts != null && counts.getAsJsonArray().get(0).getAsJsonObject().get("topic").getAsString().equals(topic))
                    producers.add(shown(row.getAsJsonObject()));
            }
            List<List<Boolean>> one = Collections.singletonList(asked);
            need(consumers.equals(one) && producers.equals(one), "consumers " + consumers + " and producers " + producers + " instead of " + one);
        }

        static List<Boolean> shown(JsonObject row) {
            List<Boolean> out = new ArrayList<>();
            for (String key : Arrays.asList("snappy", "deflate", "tls", "authed")) out.add(row.has(key) && row.get(key).getAsBoolean());
            return out;
        }

        JsonObject until(String channel, String what, Predicate<JsonObject> holds) throws Exception {
            for (long end = System.nanoTime() + PATIENCE * 1_000_000_000L;; Thread.sleep(20)) {
                JsonObject s = stats(channel);
                if (holds.test(s)) return s;
                need(System.nanoTime() < end, what + ": not within " + PATIENCE + " s, stats " + s);
            }
        }

        List<Seen> messages(String channel, int count) throws Exception {
            List<Seen> got = seen.get(channel);
            for (long end = System.nanoTime() + PATIENCE * 1_000_000_000L; got.size() < count; Thread.sleep(5))
                need(System.nanoTime() < end, got.size() + " of " + count + " messages");
            return got;
        }

        JsonObject drained(String channel) throws Exception {
            return until(channel, "drained", s -> s != null && left(s) == 0);
        }

        static int left(JsonObject s) {
            return s.get("depth").getAsInt() + s.get("in_flight_count").getAsInt() + s.get("deferred_count").getAsInt();
        }

        void exactly(String channel, int count) {
            List<String> got = new ArrayList<>();
            for (Seen s : seen.get(channel)) got.add(s.body);
            Collections.sort(got);
            need(got.equals(bodies(count)), got.size() + " bodies, not the " + count + " published ones");
        }

        void close() {
            for (Subscriber each : subscribers) each.stop();
            for (Publisher each : publishers) each.stop();
        }
    }

    static void publishConsumeFinish(Case c) throws Exception {
        c.subscribe("c", 100, c.config(), Message::finish);
        Publisher p = c.publisher();
        for (String body : bodies(20)) p.publish(c.topic, bytes(body));
        c.messages("c", 20);
        c.exactly("c", 20);
        c.drained("c");
        c.granted("c");
    }

    static void multiPublish(Case c) throws Exception {
        c.subscribe("c", 100, c.config(), Message::finish);
        c.publisher().publish(c.topic, all(bodies(500)));
        c.messages("c", 500);
        c.exactly("c", 500);
        c.drained("c");
    }

    static void deferredPublish(Case c) throws Exception {
        c.subscribe("c", 100, c.config(), Message::finish);
        long started = System.nanoTime();
        c.publisher().publishDeferred(c.topic, bytes("message 00000"), 300, TimeUnit.MILLISECONDS);
        Seen got = c.messages("c", 1).get(0);
        need(got.at - started >= 250_000_000L && got.attempts == 1, "after " + (got.at - started) + " ns, attempts " + got.attempts);
    }

    static void largeMessage(Case c) throws Exception {
        c.subscribe("c", 100, c.config(), Message::finish);
        StringBuilder body = new StringBuilder();
        for (int i = 0; i < 300_000; i++) body.append((i * 7919L) % 99991).append(' ');
        c.publisher().publish(c.topic, bytes(body.toString()));
        need(c.messages("c", 1).get(0).body.contentEquals(body), "another body");
    }

    static void requeueWithDelay(Case c) throws Exception {
        c.subscribe("c", 100, c.config(), m -> {
            if (m.getAttempts() > 1) {
                m.finish();
            } else {
                m.requeue(150);
            }
        });
        c.publisher().publish(c.topic, bytes("again"));
        List<Seen> got = c.messages("c", 2);
        Seen first = got.get(0), second = got.get(1);
        need(second.attempts == 2 && second.id.equals(first.id), "second delivery: attempts " + second.attempts);
        need(second.at - first.at >= 145_000_000L, "after " + (second.at - first.at) + " ns");
        need(c.drained("c").get("requeue_count").getAsInt() == 1, "requeue_count");
    }

    static void touch(Case c) throws Exception {
        Config config = c.config();
        config.setMsgTimeout(4000);
        c.subscribe("c", 100, config, m -> {
            for (int i = 0; i < 6; i++) {
                Thread.sleep(1000);
                m.touch();
            }
            m.finish();
        });
        c.publisher().publish(c.topic, bytes("slow"));
        c.messages("c", 1);
        JsonObject s = c.drained("c");
        need(c.seen.get("c").size() == 1 && s.get("timeout_count").getAsInt() == 0, "stats " + s);
    }

    static void maxInFlight(Case c) throws Exception {
        int[] held = {0, 0};
        c.subscribe("c", 2, c.config(), m -> {
            synchronized (held) {
                held[1] = Math.max(held[1], ++held[0]);
            }
            Thread.sleep(20);
            synchronized (held) {
                held[0]--;
            }
            m.finish();
        });
        c.publisher().publish(c.topic, all(bodies(30)));
        c.messages("c", 30);
        c.drained("c");
        need(held[1] <= 2, held[1] + " at once");
    }

    static void fanOut(Case c) throws Exception {
        for (String channel : Arrays.asList("a", "b")) c.subscribe(channel, 100, c.config(), Message::finish);
        c.publisher().publish(c.topic, all(bodies(60)));
        for (String channel : Arrays.asList("a", "b")) {
            c.messages(channel, 60);
            c.exactly(channel, 60);
        }
    }

    /** Half of the messages exactly (D-09). nsqd draws for each message, 51 % of them, so there it is a band of five deviations. */
    static void sampling(Case c) throws Exception {
        boolean nsqd = flags.containsKey("nsqd");
        int count = nsqd ? 1000 : 100, least = nsqd ? 430 : 50, most = nsqd ? 590 : 50;
        c.publisher().publish(c.topic, all(bodies(count)));
        Config config = c.config();
        config.setSampleRate(50);
        c.subscribe("c", 100, config, Message::finish);
        c.drained("c");
        List<Seen> got = c.seen.get("c");
        long different = got.stream().map(s -> s.body).distinct().count();
        need(got.size() >= least && got.size() <= most && different == got.size(), got.size() + " of " + count + " messages at 50 %");
    }

    static void heartbeats(Case c) throws Exception {
        Subscriber subscriber = c.subscribe("c", 100, c.config(), Message::finish);
        Publisher p = c.publisher();
        p.publish(c.topic, bytes("message 00000"));
        Thread.sleep(6000);
        need(subscriber.getConnectionCount() == 1, "a silent connection was lost");
        p.publish(c.topic, bytes("message 00001"));
        c.messages("c", 2);
        c.exactly("c", 2);
    }

    static void ephemeralChannel(Case c) throws Exception {
        Subscriber subscriber = c.subscribe("gone#ephemeral", 100, c.config(), Message::finish);
        c.publisher().publish(c.topic, bytes("message 00000"));
        c.messages("gone#ephemeral", 1);
        subscriber.stop();
        c.until("gone#ephemeral", "channel gone", s -> s == null);
    }

    /** Grants live for a second: a publish after that makes the server ask again. A wrong secret is refused. */
    static void authRefresh(Case c) throws Exception {
        c.subscribe("c", 100, c.config(), Message::finish);
        Publisher p = c.publisher();
        for (String body : bodies(3)) {
            p.publish(c.topic, bytes(body));
            Thread.sleep(1200);
        }
        c.messages("c", 3);
        c.exactly("c", 3);
        if (!flags.containsKey("auth-secret")) return;
        Client other = new Client();
        other.setAuthSecret("wrong");
        other.setSSLSocketFactory(Client.getDefaultClient().getSSLSocketFactory());
        Publisher wrong = new Publisher(other, flags.get("tcp"), null);
        wrong.setConfig(c.config());
        boolean refused = false;
        try {
            wrong.publish(c.topic, bytes("x"));
        } catch (RuntimeException e) {
            refused = true;
        }
        other.stop();
        need(refused, "a wrong secret publishes");
    }

    static Map<String, Body> cases() {
        Map<String, Body> out = new LinkedHashMap<>();
        out.put("publish-consume-finish", Cases::publishConsumeFinish);
        out.put("multi-publish", Cases::multiPublish);
        out.put("deferred-publish", Cases::deferredPublish);
        out.put("large-message", Cases::largeMessage);
        out.put("requeue-with-delay", Cases::requeueWithDelay);
        out.put("touch", Cases::touch);
        out.put("max-in-flight", Cases::maxInFlight);
        out.put("fan-out", Cases::fanOut);
        out.put("sampling", Cases::sampling);
        out.put("heartbeats", Cases::heartbeats);
        out.put("ephemeral-channel", Cases::ephemeralChannel);
        out.put("auth-refresh", Cases::authRefresh);
        return out;
    }

    static boolean run(String name, Body body) {
        long started = System.nanoTime();
        Case c = new Case(name);
        try {
            body.run(c);
            System.out.printf("ok %s (%.1f s)%n", name, (System.nanoTime() - started) / 1e9);
            return true;
        } catch (Exception e) {
            System.out.println("FAIL " + name + ": " + String.valueOf(e).replaceAll("\\s+", " "));
            return false;
        } finally {
            c.close();
        }
    }

    static Certificate certificate(String path) throws Exception {
        try (InputStream in = new FileInputStream(path)) {
            return CertificateFactory.getInstance("X.509").generateCertificate(in);
        }
    }

    static SSLSocketFactory sockets() throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        store.setCertificateEntry("ca", certificate(flags.get("tls-ca")));
        if (flags.containsKey("tls-cert")) {
            String pem = new String(Files.readAllBytes(Paths.get(flags.get("tls-key"))), StandardCharsets.US_ASCII);
            byte[] der = Base64.getMimeDecoder().decode(pem.replaceAll("-----[A-Z ]+-----", ""));
            store.setKeyEntry("own", KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(der)), new char[0],
                              new Certificate[] {certificate(flags.get("tls-cert"))});
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(store, new char[0]);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        return context.getSocketFactory();
    }

    static int consumeByLookup() throws Exception {
        int count = Integer.parseInt(flags.get("count"));
        List<String> got = Collections.synchronizedList(new ArrayList<>());
        Subscriber subscriber = new Subscriber(1, flags.get("lookup"));
        subscriber.subscribe(flags.get("topic"), "java", (Message m) -> {
            got.add(new String(m.getData(), StandardCharsets.UTF_8));
            m.finish();
        });
        System.out.println("asking");
        for (long end = System.nanoTime() + 3 * PATIENCE * 1_000_000_000L; got.size() < count && System.nanoTime() < end; Thread.sleep(10)) {
        }
        System.out.println(String.join("\n", got));
        return got.size() == count ? 0 : 1;
    }

    public static void main(String[] argv) throws Exception {
        for (int i = 1; i < argv.length; i++) {
            String name = argv[i].replaceFirst("^--", "");
            flags.put(name, Arrays.asList("snappy", "deflate", "nsqd").contains(name) ? "" : argv[++i]);
        }
        ExecutorService handlers = Executors.newFixedThreadPool(32);
        Client.getDefaultClient().setExecutor(handlers);
        if (argv[0].equals("lookup")) System.exit(consumeByLookup());
        if (flags.containsKey("auth-secret")) Client.getDefaultClient().setAuthSecret(flags.get("auth-secret"));
        if (flags.containsKey("tls-ca")) Client.getDefaultClient().setSSLSocketFactory(sockets());
        List<String> only = Arrays.asList(flags.getOrDefault("only", "").split(","));
        ExecutorService pool = Executors.newCachedThreadPool();
        List<Future<Boolean>> results = new ArrayList<>();
        cases().forEach((name, body) -> {
            if (only.contains("") || only.contains(name)) results.add(pool.submit(() -> run(name, body)));
        });
        boolean good = true;
        for (Future<Boolean> result : results) good &= result.get();
        System.out.flush();
        Runtime.getRuntime().halt(good ? 0 : 1);
    }
}
