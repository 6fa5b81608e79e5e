package org.tampu.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.tampu.internal.json.Json;

/** Batches beside {@code testdata/vectors/log_batch}. */
class LogBatchReaderTest {
    private static final Path VECTORS = Path.of("../../../testdata/vectors/log_batch");

    private static byte[] vector(String name) throws IOException {
        return HexFormat.of().parseHex(Files.readString(VECTORS.resolve(name + ".hex")).replaceAll("\\s", ""));
    }

    @Test
    void everyVectorSaysWhatItsJsonSays() throws IOException {
        for (String name : List.of("v1-empty", "v1-full", "v1-minimal", "v1-origins", "future-appended")) {
            List<StoredRecord> found = LogBatchReader.read(vector(name));
            List<String> lines = Files.readAllLines(VECTORS.resolve(name + ".json")).stream().filter(line -> !line.isBlank()).toList();
            assertEquals(lines.size(), found.size(), name);
            for (int at = 0; at < lines.size(); at++) {
                same(name + " " + at, Json.object(lines.get(at)), found.get(at));
            }
        }
    }

    private static void same(String what, Map<String, Object> json, StoredRecord record) {
        Instant time = Instant.parse((String) json.get("time"));
        assertEquals(time.getEpochSecond() * 1_000_000_000L + time.getNano(), record.time(), what);
        assertEquals(Level.parse((String) json.get("level")), record.level(), what);
        for (Object[] field : new Object[][] {
            {"message", record.message()}, {"logger", record.logger()}, {"file", record.file()}, {"routine", record.routine()},
            {"host", record.host()}, {"process", record.process()}, {"thread", record.thread()}, {"context", record.context()},
            {"source_object", record.sourceObject()}, {"array", record.array()}, {"antenna", record.antenna()}, {"uri", record.uri()},
            {"run_id", record.runId()}, {"stack_id", record.stackId()}, {"log_id", record.logId()},
        }) {
            assertEquals(json.getOrDefault((String) field[0], ""), field[1], what + " " + field[0]);
        }
        assertEquals(json.getOrDefault("audiences", List.of()), record.audiences(), what);
        for (Object[] field : new Object[][] {{"line", record.line()}, {"stack_level", record.stackLevel()}, {"priority", record.priority()}}) {
            Object expected = json.get((String) field[0]);
            assertEquals(expected == null ? null : ((Long) expected).intValue(), field[1], what + " " + field[0]);
        }
        List<?> data = (List<?>) json.getOrDefault("data", List.of());
        assertEquals(data.stream().map(each -> ((Map<?, ?>) each).get("value")).toList(),
                record.data().stream().map(Map.Entry::getValue).toList(), what);
    }

    @Test
    void damagedBatchesAreErrors() throws IOException {
        byte[] bytes = vector("v1-full");
        for (int length = 0; length < bytes.length - 4; length += 3) {
            byte[] cut = Arrays.copyOf(bytes, length);
            assertThrows(IllegalArgumentException.class, () -> LogBatchReader.read(cut));
        }
        for (int at = 4; at < bytes.length; at++) {
            byte[] changed = bytes.clone();
            changed[at] ^= (byte) 0xff;
            try {
                LogBatchReader.read(changed);
            } catch (IllegalArgumentException expected) {
                assertTrue(expected.getMessage() != null);
            }
        }
    }
}
