package org.tampu.log;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.NoSuchAlgorithmException;
import java.util.Map;
import javax.net.ssl.SSLContext;
import org.tampu.gateway.Trust;
import org.tampu.internal.gateway.Link;
import org.tampu.internal.gateway.Session;
import org.tampu.internal.ring.RunDirectory;

/**
 * Settings of a process's logging.
 *
 * @param source stable name of the process, as {@code CONTROL/DV01/javaContainer}
 * @param domain name of the installation
 * @param runDirectory directory where the processes of this host meet
 * @param level the loggers of this package publish nothing below it; null for nothing at all
 * @param locate records from this level on get their place in the code, which takes about a microsecond; null for none
 * @param ringBytes bytes of each thread's ring, rounded up to a power of two
 * @param maxRings threads that have a ring of their own at one time; further ones share one
 * @param host name of this host
 * @param process name of the process (ACS: container)
 * @param gateway null to log into rings that this host's node reads; else a hub's gateway: HOST:PORT, or the path of its
 *     socket
 * @param token the credential for a gateway on another host, or null
 * @param certificates file of further certificates that are trusted for a gateway on another host, or the directory with
 *     the domain's {@code authority.crt}; null for those of the JDK alone
 */
public record LogSettings(
        String source,
        String domain,
        Path runDirectory,
        Level level,
        Level locate,
        int ringBytes,
        int maxRings,
        String host,
        String process,
        String gateway,
        String token,
        Path certificates) {
    /** Longest name, in bytes of UTF-8. */
    private static final int NAME_LIMIT = 200;

    /** Checks the names. */
    public LogSettings {
        check("source", source);
        check("domain", domain);
    }

    private static void check(String noun, String name) {
        int length = name.getBytes(StandardCharsets.UTF_8).length;
        if (name.isEmpty() || length > NAME_LIMIT || name.chars().anyMatch(Character::isISOControl)) {
            throw new IllegalArgumentException("the " + noun + " '" + name + "' must have 1 to " + NAME_LIMIT
                    + " bytes of UTF-8 and no control characters");
        }
    }

    /**
     * Returns the settings of this environment: {@code TAMPU_DOMAIN}, {@code TAMPU_RUN_DIR}, {@code TAMPU_LOG_LEVEL},
     * {@code ACS_LOG_CENTRAL}, {@code TAMPU_GATEWAY}, {@code TAMPU_GATEWAY_TOKEN}, {@code TAMPU_CERTIFICATES}.
     */
    public static LogSettings fromEnvironment(String source) throws IOException {
        return from(System.getenv(), source);
    }

    static LogSettings from(Map<String, String> environment, String source) throws IOException {
        String level = environment.getOrDefault("TAMPU_LOG_LEVEL", environment.getOrDefault("ACS_LOG_CENTRAL", ""));
        String host = Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
        String certificates = named(environment, "TAMPU_CERTIFICATES");
        return new LogSettings(source, RunDirectory.domain(environment), RunDirectory.choose(environment), threshold(level),
                Level.WARNING, 1 << 20, 256, host, source, named(environment, "TAMPU_GATEWAY"),
                named(environment, "TAMPU_GATEWAY_TOKEN"), certificates == null ? null : Path.of(certificates));
    }

    private static String named(Map<String, String> environment, String name) {
        String value = environment.getOrDefault(name, "");
        return value.isEmpty() ? null : value;
    }

    private static Level threshold(String text) {
        String level = text.strip();
        if (level.equalsIgnoreCase("off") || level.equals("99")) {
            return null;
        }
        return level.isEmpty() ? Level.DELOUSE : level.equals("0") ? Level.TRACE : Level.parse(level);
    }

    /**
     * Returns a name for this process where nobody gave one: the property {@code tampu.source}, else the main class or
     * the jar file.
     */
    public static String defaultSource() {
        String named = System.getProperty("tampu.source", "");
        if (!named.isEmpty()) {
            return named;
        }
        String main = System.getProperty("sun.java.command", "java").split(" ", 2)[0];
        main = main.substring(main.lastIndexOf('/') + 1);
        return main.endsWith(".jar") ? main.substring(0, main.length() - 4) : main.substring(main.lastIndexOf('.') + 1);
    }

    /** Returns the same settings with another level. */
    public LogSettings withLevel(Level other) {
        return new LogSettings(
                source, domain, runDirectory, other, locate, ringBytes, maxRings, host, process, gateway, token, certificates);
    }

    /** Returns the same settings, with the place in the code from this level on; null for never. */
    public LogSettings withLocate(Level other) {
        return new LogSettings(
                source, domain, runDirectory, level, other, ringBytes, maxRings, host, process, gateway, token, certificates);
    }

    /** Returns the same settings with rings of this size. */
    public LogSettings withRingBytes(int bytes) {
        return new LogSettings(
                source, domain, runDirectory, level, locate, bytes, maxRings, host, process, gateway, token, certificates);
    }

    /** Returns the same settings in another domain. */
    public LogSettings inDomain(String other) {
        return new LogSettings(
                source, other, runDirectory, level, locate, ringBytes, maxRings, host, process, gateway, token, certificates);
    }

    /** Returns the same settings with records going to a hub's gateway, HOST:PORT or the path of its socket. */
    public LogSettings throughGateway(String address, String credential) {
        return new LogSettings(
                source, domain, runDirectory, level, locate, ringBytes, maxRings, host, process, address, credential, certificates);
    }

    /** Returns the same settings with further trusted certificates: a file, or the directory with {@code authority.crt}. */
    public LogSettings trusting(Path more) {
        return new LogSettings(
                source, domain, runDirectory, level, locate, ringBytes, maxRings, host, process, gateway, token, more);
    }

    /** Returns the way to connect to the gateway. */
    @SuppressWarnings("exports")
    public Session.Connector connector() throws IOException {
        if (gateway.startsWith("/")) {
            return () -> Link.unix(Path.of(gateway));
        }
        int colon = gateway.lastIndexOf(':');
        try {
            String name = gateway.substring(0, Math.max(0, colon));
            int port = Integer.parseInt(gateway.substring(colon + 1));
            SSLContext trusted = certificates == null ? SSLContext.getDefault() : Trust.certificates(certificates);
            return () -> Link.tls(name, port, trusted, 10_000);
        } catch (NumberFormatException | NoSuchAlgorithmException wrong) {
            throw new IOException("the gateway '" + gateway + "' is neither HOST:PORT nor the path of a socket", wrong);
        }
    }
}
