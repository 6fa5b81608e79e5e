package org.tampu.internal.ring;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.tampu.internal.SpecPage;

/** The files beside {@code spec/log-ring.md}, which draws them little endian. */
class RingSpecTest {
    private static final Incarnation LIFE = new Incarnation(0x1a2b3c4d, 0x1267, 0x18ea008b6316cd15L);

    @TempDir
    Path directory;

    @Test
    void theFixedPartsAreThoseOfThePage() throws Exception {
        assertEquals("1a2b3c4d-00001267-18ea008b6316cd15", LIFE.toString());
        List<byte[]> dumps = SpecPage.dumps("log-ring.md");
        assertArrayEquals(dumps.get(0), Ring.header(0, 4096, LIFE));
        Path file = directory.resolve("dictionary");
        Dictionary dictionary = new Dictionary(new RandomAccessFile(file.toFile(), "rw"), LIFE);
        assertEquals(1, dictionary.define(Dictionary.SITE, "Mount.cpp:52".getBytes(StandardCharsets.US_ASCII)));
        assertEquals(2, dictionary.define(Dictionary.VOICE, "mount".getBytes(StandardCharsets.US_ASCII)));
        assertArrayEquals(dumps.get(3), Files.readAllBytes(file));
        assertEquals(0, dictionary.define(Dictionary.SITE, new byte[(1 << 20) + 1]));
    }

    private Ring ring(int size) throws Exception {
        RandomAccessFile file = new RandomAccessFile(directory.resolve("ring-0").toFile(), "rw");
        file.setLength(Ring.HEADER_LENGTH + size);
        Ring ring = new Ring(0, size, file, file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, Ring.HEADER_LENGTH + size));
        ring.take();
        return ring;
    }

    private ByteBuffer data() throws Exception {
        byte[] all = Files.readAllBytes(directory.resolve("ring-0"));
        return ByteBuffer.wrap(Arrays.copyOfRange(all, Ring.HEADER_LENGTH, all.length)).order(ByteOrder.nativeOrder());
    }

    private static byte[] record(String text) {
        byte[] bytes = new byte[Ring.RECORD_HEADER + text.length() + 8];
        System.arraycopy(text.getBytes(StandardCharsets.US_ASCII), 0, bytes, Ring.RECORD_HEADER, text.length());
        return bytes;
    }

    @Test
    void aThreadNoteComesBeforeTheFirstRecordAndEachStampIsItsPlace() throws Exception {
        Ring ring = ring(4096);
        assertTrue(ring.write(record("hello"), 5, 1, 2, 1500, 4, 0));
        ByteBuffer data = data();
        String name = Thread.currentThread().getName();
        assertEquals(List.of(0, 8 + name.length(), 1, 0),
                List.of(data.getInt(8), data.getInt(12), data.getInt(16), data.getInt(20)), "a note of kind 1 at 0");
        assertEquals(Ring.kernelId(), data.getInt(24));
        int at = Ring.RECORD_HEADER + 8 + (name.length() + 7 & ~7);
        assertEquals(1500, data.getLong(at));
        assertEquals(List.of(1, 5, 2, at / 8),
                List.of(data.getInt(at + 8), data.getInt(at + 12), data.getInt(at + 16), data.getInt(at + 20)));
        assertEquals("hello", new String(data.array(), at + 24, 5, StandardCharsets.US_ASCII));
        assertEquals(at + 32, ring.head());
    }

    @Test
    void aFullRingCountsByLevelAndTellsItBeforeTheNextRecord() throws Exception {
        Ring ring = ring(4096);
        int kept = 0;
        while (ring.write(record("x".repeat(100)), 100, 1, 2, 1000 + kept, 4, 0)) {
            kept++;
        }
        assertTrue(kept > 25 && kept < 33, "kept " + kept);
        assertFalse(ring.write(record("y"), 1, 1, 2, 5000, 6, 0));
        assertEquals(2, ring.lost());
        ByteBuffer header = ByteBuffer.wrap(Files.readAllBytes(directory.resolve("ring-0"))).order(ByteOrder.nativeOrder());
        assertEquals(List.of(1000L + kept, 5000L, 1L, 1L),
                List.of(header.getLong(272), header.getLong(280), header.getLong(288 + 8 * 4), header.getLong(288 + 8 * 6)));
        // A drainer hands all off.
        long head = ring.head();
        try (RandomAccessFile file = new RandomAccessFile(directory.resolve("ring-0").toFile(), "rw")) {
            file.seek(384);
            file.writeLong(ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN ? Long.reverseBytes(head) : head);
        }
        assertTrue(ring.write(record("after"), 5, 1, 2, 6000, 4, 0));
        ByteBuffer data = data();
        int[] words = new int[4];
        for (int word = 0; word < 4; word++) {
            words[word] = data.getInt(((int) head + 8 + 4 * word) & 4095);
        }
        assertArrayEquals(new int[] {0, 112, 2, (int) head / 8}, words, "a note of kind 2");
        assertEquals(head + 24 + 112 + 32, ring.head());
    }

    @Test
    void aLongNameIsCutBetweenCharacters() throws Exception {
        Ring ring = ring(4096);
        ring.nameThread("é".repeat(20) + "x" + "é".repeat(20), false);
        assertTrue(ring.write(record("hello"), 5, 1, 2, 1500, 4, 0));
        assertEquals(63, data().getInt(28), "64 bytes end in a character");
        assertEquals(0, data().getInt(24), "another thread's name has no number");
    }

    @Test
    void theDirectoryOfADomainIsThatOfOtherPrograms() {
        assertEquals("alma", RunDirectory.chunk("ALMA"));
        assertEquals("a_2db", RunDirectory.chunk("a-b"));
        assertEquals("_c3_a9", RunDirectory.chunk("É"));
        assertEquals(24, RunDirectory.chunk("a".repeat(200)).length());
    }

    @Test
    void threadsThatEndedLeaveTheirRingsToOthers() throws Exception {
        RingPool pool = new RingPool(directory.resolve("run"), "test", "a", "a", "here", 4096, 4);
        for (int each = 0; each < 20; each++) {
            Thread thread = new Thread(() -> {
                // A pending interrupt would close a channel; it is still pending afterwards.
                Thread.currentThread().interrupt();
                assertTrue(pool.write(record("hello"), 5, 1, 2, 0, 4, null));
                assertTrue(Thread.currentThread().isInterrupted());
            });
            thread.start();
            thread.join();
        }
        assertEquals(1, pool.rings());
        assertEquals(0, pool.lost());
        assertTrue(Files.exists(pool.directory().resolve("source")));
        assertTrue(Files.readString(Path.of("/proc/self/maps")).contains("/" + pool.incarnation() + "/ring-0"));
    }
}
