package org.tampu.internal.bulk;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.tampu.bulk.BulkTarget;
import org.tampu.bulk.LostRange;
import org.tampu.internal.SpecPage;

/** Frames beside {@code spec/bulk.md} and {@code testdata/vectors/bulk}. */
class BulkVectorTest {
    private static ByteBuffer written(BulkFrame frame, ByteBuffer payload) {
        ByteBuffer bytes = ByteBuffer.allocate(BulkFrame.HEADER + payload.remaining());
        frame.encode(bytes);
        return bytes.put(payload.duplicate()).flip();
    }

    /** Decodes a control frame's payload and writes it again. */
    private static ByteBuffer again(int kind, ByteBuffer payload) {
        return switch (kind) {
            case BulkFrame.HELLO -> Messages.Hello.decode(payload).encode();
            case BulkFrame.WELCOME -> Messages.Welcome.decode(payload).encode();
            case BulkFrame.REFUSE -> Messages.Refuse.decode(payload).encode();
            case BulkFrame.LOST -> Messages.Lost.decode(payload).encode();
            case BulkFrame.FAULT -> Messages.Fault.decode(payload).encode();
            case BulkFrame.NACK -> Messages.Nack.decode(payload).encode();
            default -> payload;
        };
    }

    @Test
    void everyFrameIsReadAndWrittenByteForByte() throws Exception {
        TreeMap<Integer, String> kinds = new TreeMap<>();
        try (var files = Files.newDirectoryStream(Path.of("../../../testdata/vectors/bulk"), "v1-*.hex")) {
            for (Path file : files) {
                byte[] bytes = HexFormat.of().parseHex(Files.readString(file).replaceAll("\\s", ""));
                ByteBuffer from = ByteBuffer.wrap(bytes);
                BulkFrame frame = BulkFrame.decode(from);
                assertEquals(frame.length(), from.remaining(), file.toString());
                assertTrue(frame.fits(from), file.toString());
                kinds.put(frame.kind(), file.toString());
                assertArrayEquals(bytes, written(frame, from).array(), file.toString());
                assertEquals(from, again(frame.kind(), from), file.toString());
                // A shorter payload is refused, or lacks what a later field holds; nothing else happens.
                for (int length = 0; length < from.remaining(); length++) {
                    ByteBuffer part = from.duplicate().limit(from.position() + length);
                    try {
                        again(frame.kind(), part);
                    } catch (IllegalArgumentException refused) {
                        assertTrue(refused.getMessage().startsWith("a "), refused.getMessage());
                    }
                }
                // A changed bit is found, in the header as in the payload.
                for (int bit = 0; bit < 8 * bytes.length; bit += 7) {
                    byte[] changed = bytes.clone();
                    changed[bit / 8] ^= (byte) (1 << bit % 8);
                    ByteBuffer other = ByteBuffer.wrap(changed);
                    try {
                        BulkFrame read = BulkFrame.decode(other);
                        assertTrue(bit / 8 >= BulkFrame.HEADER && !(read.has(BulkFrame.CHECKED) && read.fits(other)), file + " bit " + bit);
                    } catch (IllegalArgumentException found) {
                        assertTrue(bit / 8 < BulkFrame.HEADER, file.toString());
                    }
                }
            }
        }
        assertEquals(List.of(0, 1, 2, 3, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25), List.copyOf(kinds.keySet()));
    }

    @Test
    void theFrameOfThePageIsMadeSo() throws Exception {
        byte[] page = SpecPage.dumps("bulk.md").stream().filter(bytes -> bytes.length == 51).findFirst().orElseThrow();
        ByteBuffer payload = ByteBuffer.wrap("abc".getBytes());
        BulkFrame checked = BulkFrame.checked(BulkFrame.DATA, 0x01020304, 7, 41, 1 << 20, payload);
        BulkFrame data = new BulkFrame(checked.kind(), checked.flags() | BulkFrame.END_OF_BLOCK, checked.session(), 3, 7, 41, 1 << 20, checked.sum());
        assertArrayEquals(page, written(data, payload).array());
    }

    @Test
    void aTooLongFrameAndBadTargetsAreRefused() {
        ByteBuffer bytes = ByteBuffer.allocate(BulkFrame.HEADER);
        new BulkFrame(BulkFrame.DATA, 0, 1, BulkFrame.LONGEST + 1, 1, 1, 0, 0).encode(bytes);
        assertThrows(IllegalArgumentException.class, () -> BulkFrame.decode(bytes.flip()));
        String zeros = "0".repeat(32);
        for (String bad : List.of("", "host:1", "host/" + zeros, ":1/" + zeros, "host:x/" + zeros, "host:1/xyz", "h:70000/" + zeros)) {
            assertThrows(IllegalArgumentException.class, () -> BulkTarget.parse(bad), bad);
        }
        assertEquals("[::1]:4711/" + "ab".repeat(16), BulkTarget.parse("[::1]:4711/" + "ab".repeat(16)).toString());
    }

    private static BulkFrame frame(int kind, long transfer, long sequence, long offset, int length) {
        return new BulkFrame(kind, 0, 1, length, transfer, sequence, offset, 0);
    }

    @Test
    void missingFramesAreReportedOnce() {
        Machine machine = new Machine();
        assertEquals(Machine.WRONG_ORDER, machine.take(frame(BulkFrame.DATA, 1, 1, 0, 10), null).fault());
        assertEquals(Machine.Verdict.START, machine.take(frame(BulkFrame.START, 1, 5, 0, 0), null).verdict());
        assertEquals(Machine.Verdict.DATA, machine.take(frame(BulkFrame.DATA, 1, 6, 0, 10), null).verdict());
        assertEquals(Machine.Verdict.NOTHING, machine.take(frame(BulkFrame.DATA, 1, 6, 0, 10), null).verdict());
        Machine.Judged later = machine.take(frame(BulkFrame.DATA, 1, 9, 30, 10), null);
        assertEquals(new LostRange(10, 30, 2, Machine.MISSING), later.lost());
        assertEquals(Machine.MISSING_FRAMES, later.fault());
        Machine.Judged stop = machine.take(frame(BulkFrame.STOP, 1, 10, 40, 0), null);
        assertEquals(Machine.Verdict.STOP, stop.verdict());
        assertEquals(null, stop.lost());
    }

    /** For any input in any order: no byte twice, none out of order, and each transfer that begins is ended. */
    @Test
    void anyOrderKeepsTheRules() {
        long seed = new Random().nextLong();
        Random random = new Random(seed);
        int[] kinds = {BulkFrame.START, BulkFrame.DATA, BulkFrame.DATA, BulkFrame.STOP, BulkFrame.RESET, BulkFrame.LOST};
        for (int run = 0; run < 2000; run++) {
            Machine machine = new Machine();
            boolean open = false;
            long at = 0;
            for (int step = 0; step < 30; step++) {
                int kind = kinds[random.nextInt(kinds.length)];
                BulkFrame frame = frame(kind, 1 + random.nextInt(3), random.nextInt(20), 5L * random.nextInt(10), random.nextInt(12));
                Messages.Lost lost = kind == BulkFrame.LOST ? new Messages.Lost(random.nextInt(20), 5L * random.nextInt(10), 1) : null;
                Machine.Judged judged = machine.take(frame, lost);
                String where = "seed " + seed + ", run " + run + ", step " + step;
                if (judged.lost() != null) {
                    assertTrue(open && judged.lost().from() == at, where);
                    at = judged.lost().to() < 0 ? at : judged.lost().to();
                }
                if (judged.breaks()) {
                    assertTrue(open, where);
                    open = false;
                }
                switch (judged.verdict()) {
                    case START -> {
                        assertTrue(!open, where);
                        open = true;
                        at = 0;
                        machine.has(random.nextInt(8));
                        at = machine.offset();
                    }
                    case DATA -> {
                        assertTrue(open, where);
                        long begin = frame.offset() + judged.skip();
                        assertTrue(judged.skip() == frame.length() || begin == at, where);
                        at = Math.max(at, frame.offset() + frame.length());
                    }
                    case STOP, RESET -> {
                        assertTrue(open, where);
                        open = false;
                    }
                    case NOTHING -> { }
                }
            }
            assertEquals(open, machine.isRunning(), "seed " + seed);
        }
    }
}
