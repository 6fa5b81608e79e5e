package org.tampu.event;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.tampu.gateway.Gateway;
import org.tampu.internal.gateway.Frame;
import org.tampu.internal.ring.RunDirectory;

@Timeout(60)
class EventServerTest {
    @TempDir
    Path directory;

    /** Answers the greeting and a declaration; returns the declaration. */
    private static Map<String, Object> answer(ServerSocketChannel server) throws Exception {
        try (SocketChannel channel = server.accept()) {
            ByteBuffer bytes = ByteBuffer.allocate(1 << 16).flip();
            while (true) {
                Frame frame = Frame.decode(bytes);
                if (frame == null) {
                    bytes.compact();
                    assertTrue(channel.read(bytes) >= 0, "the connection ended");
                    bytes.flip();
                } else if (frame.kind() == Frame.HELLO) {
                    channel.write(ByteBuffer.wrap(Frame.of(Frame.WELCOME, 0, Map.of("version", 1, "session", "5e", "resumed", false,
                            "received", "0", "beat_ms", 60_000)).encode()));
                } else if (frame.kind() == Frame.DECLARE) {
                    byte[] body = Frame.of(Frame.OPENED, frame.id(), Map.of()).body();
                    channel.write(ByteBuffer.wrap(new Frame(Frame.OPENED, 0, frame.id(), 1, body).encode()));
                    return frame.json();
                }
            }
        }
    }

    @Test
    void anAttributeIsDeclaredWithItsOptions() throws Exception {
        Path domain = RunDirectory.of(directory, "d");
        Files.createDirectories(domain);
        try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            server.bind(UnixDomainSocketAddress.of(domain.resolve("gateway.sock")));
            CompletableFuture<Map<String, Object>> declared = CompletableFuture.supplyAsync(() -> {
                try {
                    return answer(server);
                } catch (Exception failed) {
                    throw new IllegalStateException(failed);
                }
            });
            try (Gateway gateway = Gateway.local(directory, "d", "source")) {
                new EventServer(gateway).declare("a/b/c/d", DataType.DOUBLE, "scalar", Map.of("unit", "K"),
                        Set.of(AttributeOption.ACKNOWLEDGED, AttributeOption.REDUNDANT, AttributeOption.URGENT));
            }
            Map<String, Object> config = Map.of("name", "a/b/c/d", "data_type", "DevDouble", "format", "scalar", "unit", "K");
            assertEquals(Map.of("attribute", config, "acknowledged", true, "redundant", true, "urgent", true), declared.get());
        }
    }

    @Test
    void theDomainIsLocalWhereNoneIsNamed() {
        assertEquals("local", RunDirectory.domain(Map.of("TAMPU_DOMAIN", "")));
        assertEquals("alma", RunDirectory.domain(Map.of("TAMPU_DOMAIN", "alma")));
    }
}
