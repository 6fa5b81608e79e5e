package org.tampu.internal.gateway;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.tampu.internal.SpecPage;
import org.tampu.internal.json.Json;

/** Frames beside {@code spec/wire/gateway.md} and {@code testdata/vectors/gateway}. */
class FrameTest {
    @Test
    void aWholeSessionIsReadAndWrittenByteForByte() throws Exception {
        List<Integer> kinds = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of("../../../testdata/vectors/gateway/session.txt"))) {
            byte[] bytes = HexFormat.of().parseHex(line.substring(line.indexOf('\t') + 1).strip());
            Frame frame = Frame.decode(ByteBuffer.wrap(bytes));
            kinds.add(frame.kind());
            assertArrayEquals(bytes, frame.encode());
            assertEquals(frame.isCounted(), frame.number() != 0);
            for (int length = 0; length < bytes.length; length++) {
                assertNull(Frame.decode(ByteBuffer.wrap(Arrays.copyOf(bytes, length))), "an incomplete frame waits");
            }
            if (List.of(1, 2, 4, 16, 19, 22, 32, 33, 35, 36, 39, 40, 42).contains(frame.kind())) {
                assertEquals(new String(frame.body(), StandardCharsets.UTF_8), Json.write(frame.json()));
            }
        }
        assertTrue(kinds.containsAll(List.of(1, 2, 3, 4, 16, 17, 18, 19, 20, 21, 22, 23, 32, 33, 34, 35, 36, 38, 39, 40, 41, 42, 43, 44)), kinds.toString());
    }

    @Test
    void theFramesOfThePageAreMadeSo() throws Exception {
        List<byte[]> page = SpecPage.dumps("wire/gateway.md");
        assertArrayEquals(page.get(1), Frame.of(Frame.CREDIT, 1, 1048576).counted(2).encode());
        assertEquals("CONTROL/DV01", Frame.decode(ByteBuffer.wrap(page.get(0))).json().get("source"));
    }

    @Test
    void frameAndJsonOfStrangersAreChecked() {
        ByteBuffer header = ByteBuffer.allocate(24).order(ByteOrder.LITTLE_ENDIAN);
        header.putInt(0, (16 << 20) + 1);
        assertThrows(IllegalArgumentException.class, () -> Frame.decode(header));
        for (String bad : List.of("", "{", "{\"a\"}", "[1,", "\"\\x\"", "\"\\u12\"", "1 2", "tru", "-", "{\"a\":1,}", "[".repeat(100))) {
            assertThrows(IllegalArgumentException.class, () -> Json.parse(bad), bad);
        }
        assertEquals(Map.of("a", List.of(1L, 2.5, true), "b", "é\"\n"), Json.parse(" {\"a\": [1, 2.5, true], \"b\": \"\\u00e9\\\"\\n\"} "));
    }
}
