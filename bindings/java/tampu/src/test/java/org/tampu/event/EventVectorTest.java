package org.tampu.event;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Events beside {@code testdata/vectors/event}. */
class EventVectorTest {
    private static final Path VECTORS = Path.of("../../../testdata/vectors/event");

    private static byte[] vector(String name) throws IOException {
        return HexFormat.of().parseHex(Files.readString(VECTORS.resolve(name + ".hex")).replaceAll("\\s", ""));
    }

    @Test
    void everyVectorIsReadAndWrittenByteForByte() throws IOException {
        List<String> names;
        try (var files = Files.list(VECTORS)) {
            names = files.map(file -> file.getFileName().toString().replace(".hex", ""))
                    .filter(name -> name.startsWith("v1-") && !name.equals("v1-declaration")).sorted().toList();
        }
        assertTrue(names.size() >= 19, names.toString());
        for (String name : names) {
            byte[] bytes = vector(name);
            assertArrayEquals(bytes, EventCodec.encode(EventCodec.decode(ByteBuffer.wrap(bytes))), name);
        }
    }

    @Test
    void aScalarHasItsFields() throws IOException {
        Event event = EventCodec.decode(ByteBuffer.wrap(vector("v1-scalar")));
        assertEquals(Value.of(1.25), event.value());
        assertEquals(List.of(3, 2, 41L, 5, Quality.WARNING),
                List.of(event.attribute(), event.epoch(), event.number(), event.kinds(), event.quality()));
        assertTrue(event.isOf("change") && event.isOf("archive") && !event.isOf("alarm"));
        Event image = EventCodec.decode(ByteBuffer.wrap(vector("v1-ushort-image")));
        assertEquals(DataType.USHORT, image.value().type());
        assertEquals(2, image.value().format());
        assertEquals("Io_Timeout", EventCodec.decode(ByteBuffer.wrap(vector("v1-error"))).errors().get(0).reason());
        assertEquals("shutter", EventCodec.decode(ByteBuffer.wrap(vector("v1-generic"))).name());
        assertEquals(new Encoded("JPEG", new byte[] {-1, -40, -1}),
                EventCodec.decode(ByteBuffer.wrap(vector("v1-encoded"))).value().elements());
        assertEquals(Value.of(1.25), EventCodec.decode(ByteBuffer.wrap(vector("future-event"))).value());
    }

    @Test
    void damagedBytesAreErrorsThatNameThePlace() throws IOException {
        for (String name : List.of("v1-scalar", "v1-error", "v1-string", "v1-encoded", "v1-ushort-image")) {
            byte[] bytes = vector(name);
            for (int length = 0; length < bytes.length; length++) {
                ByteBuffer cut = ByteBuffer.wrap(Arrays.copyOf(bytes, length));
                assertThrows(IllegalArgumentException.class, () -> EventCodec.decode(cut), name);
            }
            for (int at = 4; at < bytes.length; at++) {
                byte[] changed = bytes.clone();
                changed[at] = (byte) 0xff;
                try {
                    EventCodec.decode(ByteBuffer.wrap(changed));
                } catch (IllegalArgumentException expected) {
                    assertTrue(expected.getMessage() != null);
                }
            }
        }
    }

    @Test
    void wrongElementsAndShapesAreRefused() {
        assertEquals("elements of DevDouble are a double[], not a int[]",
                assertThrows(IllegalArgumentException.class, () -> Value.spectrum(DataType.DOUBLE, new int[3])).getMessage());
        assertThrows(IllegalArgumentException.class, () -> Value.image(DataType.SHORT, 3, 3, new short[8]));
        assertEquals(65535.0, Value.spectrum(DataType.USHORT, new short[] {-1}).asDouble());
    }
}
