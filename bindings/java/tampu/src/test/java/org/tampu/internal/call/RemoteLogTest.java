package org.tampu.internal.call;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.tampu.internal.gateway.Frame;
import org.tampu.internal.gateway.Link;
import org.tampu.log.Level;

/** Log records through a hub of this test, which refuses some, and ends sessions. */
@Timeout(60)
class RemoteLogTest {
    @TempDir
    Path directory;

    private final PrintStream err = System.err;
    private ServerSocketChannel server;
    private RemoteLog log;

    /** One connection as the hub has it. */
    private final class Hub implements AutoCloseable {
        private final SocketChannel channel = server.accept();
        private final ByteBuffer bytes = ByteBuffer.allocate(1 << 20).flip();
        private final Map<Integer, String> topics = new HashMap<>();
        private final Map<String, Integer> published = new HashMap<>();
        private final List<String> seen = new ArrayList<>();
        private long last;

        Hub() throws Exception {
            assertEquals(Frame.HELLO, next().kind());
        }

        Frame next() throws Exception {
            while (true) {
                Frame frame = Frame.decode(bytes);
                if (frame != null && frame.kind() != Frame.ACK) {
                    return frame;
                } else if (frame == null) {
                    bytes.compact();
                    assertTrue(channel.read(bytes) >= 0, "the connection ended");
                    bytes.flip();
                }
            }
        }

        void send(int kind, int id, Map<String, Object> body) throws Exception {
            byte[] content = Frame.of(kind, id, body).body();
            channel.write(ByteBuffer.wrap(new Frame(kind, 0, id, kind >= Frame.OPEN ? ++last : 0, content).encode()));
        }

        void welcome() throws Exception {
            send(Frame.WELCOME, 0, Map.of("version", 1, "session", "5e", "resumed", false, "received", "0", "beat_ms", 60_000));
        }

        /** Takes the next declaration or record, and answers it. Returns its topic. */
        String take(String denied) throws Exception {
            Frame frame = next();
            if (frame.kind() == Frame.DECLARE) {
                String topic = String.valueOf(frame.json().get("topic"));
                topics.put(frame.id(), topic);
                boolean isDenied = topic.equals(denied);
                send(isDenied ? Frame.ENDED : Frame.OPENED, frame.id(), isDenied ? Map.of("code", "denied", "error", "not you") : Map.of());
                return topic;
            }
            assertEquals(Frame.PUBLISH, frame.kind());
            String topic = topics.get(frame.id());
            if (!topic.equals(denied)) {
                int count = published.merge(topic, 1, Integer::sum);
                send(Frame.RECEIPT, frame.id(), Map.of("written", "" + count, "delivered", "" + count, "readers", 1));
            }
            seen.add(new String(frame.body(), StandardCharsets.ISO_8859_1));
            return topic;
        }

        boolean hasSeen(String text) {
            return seen.stream().anyMatch(each -> each.contains(text));
        }

        /** Takes frames until a record with this text has come. */
        void until(String text, String denied) throws Exception {
            while (!hasSeen(text)) {
                take(denied);
            }
        }

        @Override
        public void close() throws IOException {
            channel.close();
        }
    }

    @BeforeEach
    void listen() throws Exception {
        // It is told that records wait.
        System.setErr(new PrintStream(OutputStream.nullOutputStream()));
        server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        server.bind(UnixDomainSocketAddress.of(directory.resolve("s")));
        log = new RemoteLog(() -> Link.unix(directory.resolve("s")), "d", "test", null, 20);
    }

    @AfterEach
    void close() throws Exception {
        server.close();
        System.setErr(err);
    }

    private void put(Level level, String message) {
        WholeRecord record = new WholeRecord();
        record.level = level.number();
        record.message = message;
        assertTrue(log.put(record));
    }

    @Test
    void aRefusedLevelIsCountedAndReportedAndTheOthersGoOn() throws Exception {
        try (Hub hub = new Hub()) {
            hub.welcome();
            put(Level.DEBUG, "refused");
            put(Level.INFO, "taken");
            hub.until("taken", "log/debug");
            hub.until("1 records lost here: the hub refused them: not you", "log/debug");
            assertEquals(1, log.lost());
            put(Level.INFO, "after it");
            hub.until("after it", "log/debug");
            // Once the hub allows it, the level is published again.
            put(Level.DEBUG, "allowed 0");
            for (int nth = 1; !hub.hasSeen("allowed"); nth++) {
                hub.take("");
                put(Level.DEBUG, "allowed " + nth);
            }
        }
    }

    @Test
    void anEndedSessionIsBegunAnewAndWhatHadNoReceiptIsSentAgain() throws Exception {
        try (Hub hub = new Hub()) {
            hub.welcome();
            put(Level.INFO, "without receipt");
            assertEquals("log/info", hub.take(""));
            assertTrue(hub.next().kind() == Frame.PUBLISH);
            hub.send(Frame.BYE, 0, Map.of("code", "unauthenticated", "error", "the token has ended"));
        }
        put(Level.INFO, "meanwhile");
        try (Hub hub = new Hub()) {
            hub.send(Frame.BYE, 0, Map.of("code", "unauthenticated", "error", "the token has ended"));
        }
        assertFalse(log.flush(0));
        try (Hub hub = new Hub()) {
            hub.welcome();
            hub.until("without receipt", "");
            hub.until("meanwhile", "");
            assertTrue(log.flush(30_000_000_000L));
            assertEquals(0, log.lost());
        }
    }
}
