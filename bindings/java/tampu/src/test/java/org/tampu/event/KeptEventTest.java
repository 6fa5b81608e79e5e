package org.tampu.event;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Kept events beside {@code testdata/vectors/event}. */
class KeptEventTest {
    private static byte[] vector() throws IOException {
        String text = Files.readString(Path.of("../../../testdata/vectors/event/kept-v1-scalar.hex"));
        return HexFormat.of().parseHex(text.replaceAll("\\s", ""));
    }

    @Test
    void aKeptEventHasItsFields() throws IOException {
        KeptEvent kept = KeptEvent.decode(ByteBuffer.wrap(vector()));
        assertEquals(List.of("update", 3, 5L, 7L, 11L, 12L), List.of(kept.reason(), kept.attribute(), kept.from(), kept.number(), kept.time(), kept.received()));
        assertEquals(List.of("pump", "a/b/c/d", "mbar", ""), List.of(kept.source(), kept.name(), kept.unit(), kept.note()));
        assertEquals("03020100-07060504-0f0e0d0c0b0a0908", kept.incarnation());
        assertEquals(Value.of(1.25), kept.event().value());
    }

    @Test
    void damagedBytesAreErrors() throws IOException {
        byte[] bytes = vector();
        for (int length = 0; length < bytes.length; length++) {
            ByteBuffer cut = ByteBuffer.wrap(bytes, 0, length);
            assertThrows(IllegalArgumentException.class, () -> KeptEvent.decode(cut), length + " bytes");
        }
        bytes[8] = 99;
        assertThrows(IllegalArgumentException.class, () -> KeptEvent.decode(ByteBuffer.wrap(bytes)));
    }
}
