package org.tampu.internal.gateway;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.tampu.gateway.GatewayException;
import org.tampu.gateway.Question;
import org.tampu.internal.SpecPage;

/** Services beside a hub of this test. */
@Timeout(60)
class AnsweredServiceTest {
    @TempDir
    Path directory;

    private ServerSocketChannel server;
    private Session session;
    private SocketChannel hub;
    private final ByteBuffer bytes = ByteBuffer.allocate(1 << 16).flip();

    @BeforeEach
    void listen() throws Exception {
        server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        server.bind(UnixDomainSocketAddress.of(directory.resolve("s")));
        session = new Session(() -> Link.unix(directory.resolve("s")), Map.of("versions", List.of(1), "client", "java 7"));
    }

    @AfterEach
    void close() throws Exception {
        session.close();
        server.close();
    }

    private void welcome(List<String> features) throws Exception {
        hub = server.accept();
        bytes.clear().flip();
        next();
        hub.write(ByteBuffer.wrap(Frame.of(Frame.WELCOME, 0, Map.of("version", 1, "hub", "0.9", "session", "5e", "resumed", false,
                "received", "0", "beat_ms", 60_000, "features", features)).encode()));
        session.awaitWelcome(10_000);
    }

    private Frame next() throws Exception {
        while (true) {
            Frame frame = Frame.decode(bytes);
            if (frame != null && frame.kind() != Frame.ACK) {
                return frame;
            } else if (frame == null) {
                bytes.compact();
                assertTrue(hub.read(bytes) >= 0, "the connection ended");
                bytes.flip();
            }
        }
    }

    private void send(int number, Frame frame) throws Exception {
        hub.write(ByteBuffer.wrap(frame.counted(number).encode()));
    }

    private static Frame question(int id, long number, String text) {
        byte[] octets = ("local" + text).getBytes(StandardCharsets.UTF_8);
        return new Frame(Frame.QUESTION, 0, id, 0, ByteBuffer.allocate(16 + octets.length).order(ByteOrder.LITTLE_ENDIAN)
                .putLong(number).putInt(10_000).putShort((short) 5).putShort((short) 0).put(octets).array());
    }

    @Test
    void theFramesOfThePageAreReadSo() throws Exception {
        List<byte[]> page = SpecPage.dumps("wire/gateway.md");
        assertArrayEquals(page.get(4), question(5, 1, "{\"name\":\"corr\"}").counted(14).encode());
        assertEquals(Frame.ANSWER, Frame.decode(ByteBuffer.wrap(page.get(5))).kind());
    }

    @Test
    void aHubThatPassesNoQuestionsOnIsNamed() throws Exception {
        welcome(List.of());
        GatewayException old = assertThrows(GatewayException.class, () -> AnsweredService.open(session, "mount/position", null, question -> { }));
        assertEquals("version", old.code());
        assertTrue(old.getMessage().contains("the hub of release 0.9") && old.getMessage().contains("update the hub"), old.getMessage());
    }

    @Test
    void questionsAreAnsweredRefusedAndForgotten() throws Exception {
        welcome(List.of("serve"));
        BlockingQueue<Question> waiting = new LinkedBlockingQueue<>();
        CompletableFuture<AnsweredService> opening = CompletableFuture.supplyAsync(() -> {
            try {
                return AnsweredService.open(session, "mount/position", "az", question -> {
                    if (question.text().equals("off")) {
                        throw new IllegalStateException("the drive is off");
                    }
                    if (question.text().equals("wait")) {
                        waiting.add(question);
                        while (!question.isCancelled()) {
                            Thread.sleep(5);
                        }
                    }
                    question.json(Map.of("by", question.asker()));
                });
            } catch (GatewayException refused) {
                throw new IllegalStateException(refused);
            }
        });
        Frame serve = next();
        assertEquals(Map.of("service", "mount/position", "name", "az"), serve.json());
        send(1, Frame.of(Frame.OPENED, serve.id(), Map.of("incarnation", "i")));
        assertEquals("i", opening.get().incarnation());
        send(2, question(serve.id(), 1, ""));
        Frame part = next();
        assertEquals("{\"by\":\"local\"}", new String(part.body(), 8, part.body().length - 8, StandardCharsets.UTF_8));
        Frame last = next();
        assertArrayEquals(new byte[] {1, 0, 0, 0, 0, 0, 0, 0}, last.body());
        assertEquals(1, last.flags());
        send(3, question(serve.id(), 2, "off"));
        Frame refused = next();
        assertEquals(3, refused.flags());
        assertEquals("{\"error\":\"the drive is off\"}", new String(Arrays.copyOfRange(refused.body(), 8, refused.body().length), StandardCharsets.UTF_8));
        send(4, question(serve.id(), 3, "wait"));
        Question first = waiting.take();
        send(5, Frame.of(Frame.CANCEL, serve.id(), 3L));
        while (!first.isCancelled()) {
            Thread.sleep(5);
        }
        assertFalse(first.part(new byte[1]), "nobody reads it");
        // A new session has other numbers, which answers of the old one must not reach.
        send(6, question(serve.id(), 4, "wait"));
        Question old = waiting.take();
        hub.close();
        welcome(List.of("serve"));
        assertEquals(Frame.SERVE, next().kind());
        assertFalse(old.part(new byte[1]));
        send(1, Frame.of(Frame.OPENED, serve.id(), Map.of("incarnation", "j")));
        send(2, question(serve.id(), 1, ""));
        assertEquals(1, ByteBuffer.wrap(next().body()).order(ByteOrder.LITTLE_ENDIAN).getLong());
    }

    @Test
    void readsOfAnAttributeAreServedWithItsPublisher() throws Exception {
        welcome(List.of("serve"));
        CompletableFuture<AnsweredService> opening = CompletableFuture.supplyAsync(() -> {
            try {
                return AnsweredService.serve(session, "obs/mount/1/az", Map.of("read", 7, "fresh_ms", 500L), question -> {
                    throw new IllegalStateException("the drive is off");
                });
            } catch (GatewayException refused) {
                throw new IllegalStateException(refused);
            }
        });
        Frame serve = next();
        assertEquals(Map.of("read", 7L, "fresh_ms", 500L), serve.json());
        send(1, Frame.of(Frame.OPENED, serve.id(), Map.of("incarnation", "i")));
        opening.get();
        send(2, question(serve.id(), 1, ""));
        Frame refused = next();
        assertEquals(3, refused.flags());
        assertEquals("{\"error\":\"the drive is off\"}", new String(refused.body(), 8, refused.body().length - 8, StandardCharsets.UTF_8));
        session.close();
        hub.close();
    }
}
