package org.tampu.gateway;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.net.ssl.SSLContext;
import org.tampu.internal.gateway.AnsweredService;
import org.tampu.internal.gateway.Answers;
import org.tampu.internal.gateway.Link;
import org.tampu.internal.gateway.Session;
import org.tampu.internal.json.Json;
import org.tampu.internal.ring.RunDirectory;

/**
 * A session with a hub, for events and questions. It connects again by itself after a lost connection. Nothing is lost
 * or doubled if that takes less than a minute and the hub has not been restarted meanwhile. After a restart,
 * subscriptions report the events that are missing, and unacknowledged readings are published again.
 *
 * <pre>{@code
 * try (Gateway gateway = Gateway.local("CONTROL/DV01")) { ... }
 * }</pre>
 */
public final class Gateway implements AutoCloseable {
    private static final long WELCOME_MILLIS = 10_000;

    private final Session session;

    private Gateway(Session session) {
        this.session = session;
    }

    /** Connects to the hub of this host and user; {@code source} is the name under which the session publishes. */
    public static Gateway local(String source) throws IOException {
        return local(RunDirectory.choose(System.getenv()), RunDirectory.domain(System.getenv()), source);
    }

    /** Connects to the hub of a domain in this run-time directory. */
    public static Gateway local(Path runDirectory, String domain, String source) throws IOException {
        Path socket = RunDirectory.of(runDirectory, domain).resolve("gateway.sock");
        return open(() -> Link.unix(socket), domain, source, null);
    }

    /**
     * Connects to a hub on another host by TLS 1.3.
     *
     * @param context the authorities that are trusted: {@link Trust#certificates} for the domain's own beside those of the JDK,
     *     {@link SSLContext#getDefault} for these alone
     * @param token the credential, or null
     */
    public static Gateway tls(String host, int port, SSLContext context, String domain, String source, String token)
            throws IOException {
        return open(() -> Link.tls(host, port, context, (int) WELCOME_MILLIS), domain, source, token);
    }

    private static Gateway open(Session.Connector connector, String domain, String source, String token) throws IOException {
        Map<String, Object> hello = new LinkedHashMap<>();
        hello.put("versions", List.of(1));
        hello.put("features", List.of(AnsweredService.FEATURE));
        hello.put("client", "tampu-java 0.1.0");
        hello.put("source", source);
        hello.put("domain", domain);
        if (token != null) {
            hello.put("token", token);
        }
        Session session = new Session(connector, hello);
        try {
            session.awaitWelcome(WELCOME_MILLIS);
        } catch (GatewayException refused) {
            session.close();
            throw refused;
        }
        return new Gateway(session);
    }

    /** Returns the session, for the other packages of this module. */
    @SuppressWarnings("exports")
    public Session session() {
        return session;
    }

    /** Returns the principal that the hub takes this session for. */
    public String principal() {
        return Json.text(session.welcome(), "principal", "");
    }

    /**
     * Asks a service; the first process that answers counts.
     *
     * @param question the service's question, JSON for most of them
     * @return the parts of the answer
     */
    public List<byte[]> ask(String service, String question, Duration timeout) throws GatewayException {
        return ask(service, question, timeout, false);
    }

    /**
     * Asks all processes that serve a service.
     *
     * @return the parts of all answers; those of several processes may alternate
     */
    public List<byte[]> askAll(String service, String question, Duration timeout) throws GatewayException {
        return ask(service, question, timeout, true);
    }

    private List<byte[]> ask(String service, String question, Duration timeout, boolean all) throws GatewayException {
        return Answers.ask(session, service, question.getBytes(StandardCharsets.UTF_8), timeout, all).stream()
                .map(part -> Arrays.copyOfRange(part, Answers.FROM, part.length)).toList();
    }

    /**
     * Answers a service of the bus, until the returned value is closed. It goes on after a lost connection, and beside a
     * restarted hub. A hub that cannot pass questions on fails with the code {@code version}.
     *
     * @param service the name, as {@code mount/position}; those that begin like the hub's own are refused
     */
    public Service serve(String service, ServiceHandler handler) throws GatewayException {
        return new Service(AnsweredService.open(session, service, null, handler));
    }

    /** Answers those questions of a service that are for this name, or for none: services whose answerers are offers. */
    public Service serve(String service, String name, ServiceHandler handler) throws GatewayException {
        return new Service(AnsweredService.open(session, service, name, handler));
    }

    /** Waits until the hub has received all that was published; returns whether it has. */
    public boolean flush(Duration timeout) {
        return session.flush(timeout.toMillis());
    }

    /** Ends the session, its publishers and its subscriptions. Waits up to 2 s until the hub has received all. */
    @Override
    public void close() {
        session.flush(2000);
        session.close();
    }
}
