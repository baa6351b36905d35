// Serves one file from memory by a fixed pool of threads; see java.rs for the settings.
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsParameters;
import com.sun.net.httpserver.HttpsServer;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.zip.GZIPOutputStream;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;

public final class Server {
    private static final char[] NO_PASSWORD = new char[0];

    private final byte[] body;
    private final int gzipLevel;
    private final boolean keeps;
    private final List<String[]> fields = new ArrayList<>();
    private final String kind;
    private final long first;
    private final long second;
    private final AtomicLong requests = new AtomicLong();
    private final Object lock = new Object();
    private long window = -1;
    private long letThrough = 0;

    public static void main(String[] words) throws Exception {
        Map<String, String> set = new HashMap<>();
        List<String> fields = new ArrayList<>();
        for (String word : words) {
            String[] pair = word.split("=", 2);
            if (pair[0].equals("field")) fields.add(pair[1]);
            else set.put(pair[0], pair[1]);
        }
        Server server = new Server(set, fields);
        int colon = set.get("listen").lastIndexOf(':');
        InetSocketAddress address = new InetSocketAddress(
            set.get("listen").substring(0, colon), Integer.parseInt(set.get("listen").substring(colon + 1)));
        int backlog = Integer.parseInt(set.get("backlog"));
        HttpServer http = set.containsKey("key") ? tls(address, backlog, set) : HttpServer.create(address, backlog);
        http.createContext("/", server::handle);
        http.setExecutor(Executors.newFixedThreadPool(Integer.parseInt(set.get("threads"))));
        http.start();
    }

    private Server(Map<String, String> set, List<String> typed) throws IOException {
        body = Files.readAllBytes(Path.of(set.get("file")));
        gzipLevel = Integer.parseInt(set.getOrDefault("gzip", "-1"));
        keeps = Boolean.parseBoolean(set.get("keepalive"));
        for (String field : typed) fields.add(field.split(": ", 2));
        String[] handler = set.get("handler").split(":");
        kind = handler[0];
        first = handler.length > 1 ? Long.parseLong(handler[1]) : 0;
        second = handler.length > 2 ? Long.parseLong(handler[2]) : 0;
    }

    private void handle(HttpExchange exchange) throws IOException {
        work();
        for (String[] field : fields) exchange.getResponseHeaders().set(field[0], field[1]);
        if (!keeps) exchange.getResponseHeaders().set("Connection", "close");
        exchange.getResponseHeaders().set("Content-Type", "text/html");
        byte[] sent = body;
        String accepted = exchange.getRequestHeaders().getFirst("Accept-Encoding");
        if (gzipLevel >= 0 && accepted != null && accepted.contains("gzip")) {
            sent = gzipped();
            exchange.getResponseHeaders().set("Content-Encoding", "gzip");
        }
        exchange.sendResponseHeaders(200, sent.length);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write(sent);
        }
    }

    private byte[] gzipped() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(body.length);
        try (GZIPOutputStream gzip = new GZIPOutputStream(bytes, 16384) {{ def.setLevel(gzipLevel); }}) {
            gzip.write(body);
        }
        return bytes.toByteArray();
    }

    private void work() {
        switch (kind) {
            case "sleeps" -> sleep(first);
            case "burns" -> {
                long until = System.nanoTime() + first * 1000;
                while (System.nanoTime() < until) Thread.onSpinWait();
            }
            case "slow-share" -> {
                if (requests.incrementAndGet() % first == 0) sleep(second);
            }
            case "locks" -> {
                // A lock that nobody else has is none.
                if (second == 0) sleep(first);
                else synchronized (lock) { sleep(first); }
            }
            case "limits" -> {
                for (long wait = ask(); wait > 0; wait = ask()) sleep(wait);
            }
            default -> { }
        }
    }

    /** Lets a request through, or tells for how many microseconds it has to wait before it asks again. */
    private long ask() {
        synchronized (lock) {
            long now = System.nanoTime() / 1000;
            if (now / second != window) {
                window = now / second;
                letThrough = 0;
            }
            if (letThrough == first) return (window + 1) * second - now;
            letThrough += 1;
            return 0;
        }
    }

    /** To the microsecond, which `Thread.sleep` does not offer. */
    private static void sleep(long us) {
        long until = System.nanoTime() + us * 1000;
        for (long left = us * 1000; left > 0; left = until - System.nanoTime()) LockSupport.parkNanos(left);
    }

    private static HttpsServer tls(InetSocketAddress address, int backlog, Map<String, String> set) throws Exception {
        // Unlike PKCS12 it takes chains of which one certificate does not sign the next.
        KeyStore store = KeyStore.getInstance("JKS");
        store.load(null, NO_PASSWORD);
        try (var chain = new ByteArrayInputStream(Files.readAllBytes(Path.of(set.get("chain"))))) {
            Certificate[] all = CertificateFactory.getInstance("X.509").generateCertificates(chain)
                .toArray(new Certificate[0]);
            store.setKeyEntry("twin", key(Path.of(set.get("key")), all[0]), NO_PASSWORD, all);
        }
        KeyManagerFactory managers = KeyManagerFactory.getInstance("SunX509");
        managers.init(store, NO_PASSWORD);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(managers.getKeyManagers(), null, null);
        HttpsServer server = HttpsServer.create(address, backlog);
        String[] versions = set.get("versions").split(",");
        server.setHttpsConfigurator(new HttpsConfigurator(context) {
            @Override
            public void configure(HttpsParameters parameters) {
                SSLParameters ours = context.getDefaultSSLParameters();
                ours.setProtocols(versions);
                parameters.setSSLParameters(ours);
            }
        });
        return server;
    }

    private static PrivateKey key(Path path, Certificate of) throws Exception {
        String text = Files.readString(path).replaceAll("-----[A-Z ]+-----", "");
        byte[] der = Base64.getMimeDecoder().decode(text);
        return KeyFactory.getInstance(of.getPublicKey().getAlgorithm()).generatePrivate(new PKCS8EncodedKeySpec(der));
    }
}
