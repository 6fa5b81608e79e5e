package org.tampu.internal.bulk;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.HexFormat;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.tampu.bulk.BulkSender;
import org.tampu.bulk.BulkTarget;
import org.tampu.bulk.Protection;
import org.tampu.bulk.SlowPolicy;
import org.tampu.internal.ring.Incarnation;

/** The frames that a sender makes, beside {@code testdata/vectors/bulk} and on a socket. */
class SentFramesTest {
    private static byte[] vector(String name) throws Exception {
        return HexFormat.of().parseHex(Files.readString(Path.of("../../../testdata/vectors/bulk/v1-" + name + ".hex")).replaceAll("\\s", ""));
    }

    private static byte[] written(BulkFrame frame, ByteBuffer payload) {
        ByteBuffer bytes = ByteBuffer.allocate(BulkFrame.HEADER + payload.remaining());
        frame.encode(bytes);
        return bytes.put(payload.duplicate()).array();
    }

    /** Returns a flow of session 01020304 whose next frame is that of the vectors. */
    private static Numbering numbering(long transfer, long sequence, long offset) throws Exception {
        Numbering numbering = new Numbering(0x01020304, 1 << 18);
        while (numbering.transfer() < transfer - 1) {
            numbering.start(ByteBuffer.allocate(0), true);
            numbering.reset();
        }
        ByteBuffer nothing = ByteBuffer.allocate(0);
        BulkFrame last = numbering.start(nothing, true);
        while (last.sequence() < sequence - 1) {
            last = numbering.data(0, nothing, last);
        }
        if (offset > 0) {
            numbering.beginAt(offset);
        }
        return numbering;
    }

    @Test
    void everyVectorOfASenderIsMadeByteForByte() throws Exception {
        ByteBuffer parameter = ByteBuffer.wrap("uid://A002/X1".getBytes());
        Numbering before = numbering(6, 39, 0);
        before.reset();
        assertArrayEquals(vector("start"), written(before.start(parameter, true), parameter));

        ByteBuffer abc = ByteBuffer.wrap("abc".getBytes());
        BulkFrame summed = BulkFrame.of(BulkFrame.DATA, 0, 0, 0, 0, 0, abc, true);
        ByteBuffer nothing = ByteBuffer.allocate(0);
        Numbering flow = numbering(7, 41, 1 << 20);
        assertArrayEquals(vector("data"), written(flow.data(BulkFrame.END_OF_BLOCK, abc, summed), abc));
        assertArrayEquals(vector("stop"), written(flow.stop(true), nothing));
        BulkFrame reset = numbering(7, 41, 1 << 20).reset();
        assertArrayEquals(vector("reset"), written(BulkFrame.of(reset.kind(), 0, reset.session(), reset.transfer(), reset.sequence(),
                reset.offset(), nothing, true), nothing));
        assertArrayEquals(vector("ping"), written(BulkFrame.checked(BulkFrame.PING, 0x01020304, 0, 0, 0, nothing), nothing));
        ByteBuffer lost = new Messages.Lost(44, 2 << 20, 2).encode();
        assertArrayEquals(vector("lost"), written(BulkFrame.checked(BulkFrame.LOST, 0x01020304, 7, 41, 1 << 20, lost), lost));

        // The vector's sender asks for shared memory, which is the only difference.
        var settings = new SendSettings("alma", "CORR", "correlator", "spectra", 1 << 18, 8 << 20, true, Protection.AUTO,
                SlowPolicy.waits(), 0, 0, 0, 1, 0);
        byte[] token = HexFormat.of().parseHex("ab".repeat(16));
        byte[] incarnation = new Incarnation(0x1a2b3c4d, 4711, 1_795_248_000_123_456_789L).toBytes();
        Messages.Hello own = SendConnection.hello(settings, 0, 0x01020304, 7, token, incarnation);
        assertEquals(0, own.transport());
        ByteBuffer hello = new Messages.Hello(own.version(), 1, own.options(), own.frame(), own.session(), own.ackEvery(), own.transfer(),
                own.token(), own.incarnation(), own.domain(), own.source(), own.stream(), own.flow(), "/proc/4711/fd/9", 0, null).encode();
        assertArrayEquals(vector("hello"), written(BulkFrame.checked(BulkFrame.HELLO, 0, 0, 0, 0, hello), hello));
        assertEquals(new Messages.Patience(2500, 5000), Messages.Patience.decode(new Messages.Patience(2500, 5000).encode()));
    }

    /** A receiver of one block, which demands checksums or does not; returns the Data frame. */
    private static BulkFrame sent(boolean demanded, boolean own) throws Exception {
        byte[] token = new byte[16];
        try (var listener = ServerSocketChannel.open().bind(new java.net.InetSocketAddress("127.0.0.1", 0));
                var sender = BulkSender.builder("test", "sender", "stream").checksum(own).receivers(1, Duration.ofSeconds(60)).open()) {
            CompletableFuture<BulkFrame> data = CompletableFuture.supplyAsync(() -> {
                try (Wire wire = new Wire(listener.accept())) {
                    wire.setLimit(1 << 20);
                    wire.read();
                    Messages.Hello hello = Messages.Hello.decode(wire.payload());
                    assertEquals(own ? 1 : 0, hello.options());
                    wire.write(BulkFrame.WELCOME, new Messages.Welcome(1, 0, demanded ? 1 : 0, 1 << 16, 0, 0, new byte[16], "fake", "", 0).encode());
                    BulkFrame found = null;
                    while (true) {
                        BulkFrame frame = wire.read();
                        assertTrue(frame.fits(wire.payload()));
                        assertEquals(hello.session(), frame.session());
                        found = frame.kind() == BulkFrame.DATA ? frame : found;
                        if (frame.kind() == BulkFrame.START || frame.kind() == BulkFrame.STOP) {
                            wire.write(new BulkFrame(BulkFrame.ACK, 0, frame.session(), 0, frame.transfer(), frame.sequence() + 1,
                                    frame.offset(), 0), ByteBuffer.allocate(0));
                        }
                        if (frame.kind() == BulkFrame.STOP) {
                            return found;
                        }
                    }
                } catch (java.io.IOException failed) {
                    throw new java.io.UncheckedIOException(failed);
                }
            });
            sender.connect(new BulkTarget("127.0.0.1", listener.socket().getLocalPort(), token));
            sender.start("");
            sender.send("abc".getBytes());
            assertTrue(sender.stop().isComplete());
            return data.get(60, TimeUnit.SECONDS);
        }
    }

    @Test
    void checksumsAreMadeIfOneEndAsksForThem() throws Exception {
        for (boolean demanded : new boolean[] {false, true}) {
            for (boolean own : new boolean[] {false, true}) {
                BulkFrame data = sent(demanded, own);
                assertEquals(demanded || own, data.has(BulkFrame.CHECKED));
                assertTrue(data.has(BulkFrame.END_OF_BLOCK));
            }
        }
    }

    @Test
    void regionsOfAnArenaDoNotOverlapWhileTheyAreUsed() {
        long seed = new Random().nextLong();
        Random random = new Random(seed);
        for (int run = 0; run < 200; run++) {
            Arena arena = new Arena(100);
            ArrayDeque<Arena.Region> held = new ArrayDeque<>();
            ArrayDeque<Byte> marks = new ArrayDeque<>();
            for (int step = 0; step < 200; step++) {
                Arena.Region region = arena.take(1 + random.nextInt(40));
                if (region != null) {
                    byte mark = (byte) step;
                    for (ByteBuffer bytes = region.bytes(); bytes.hasRemaining(); ) {
                        bytes.put(mark);
                    }
                    arena.use(region);
                    arena.release(region);
                    held.add(region);
                    marks.add(mark);
                } else {
                    assertTrue(!held.isEmpty(), "seed " + seed);
                }
                while (!held.isEmpty() && (region == null || random.nextInt(3) == 0)) {
                    Arena.Region first = held.poll();
                    byte mark = marks.poll();
                    for (ByteBuffer bytes = first.bytes(); bytes.hasRemaining(); ) {
                        assertEquals(mark, bytes.get(), "seed " + seed);
                    }
                    arena.unuse(first);
                    region = first;
                }
            }
        }
    }

    @Test
    void aRateIsKeptAndAPauseIsNotMadeUpFor() {
        Throttle throttle = new Throttle(64e6);
        long now = 5;
        for (int round = 0; round < 2; round++) {
            long began = now;
            for (int each = 0; each < 1000; each++) {
                now += throttle.sent(64_000, now);
            }
            assertEquals(1.0, (now - began) / 1e9, 0.01);
            now += 100_000_000_000L;
        }
        assertEquals(0, new Throttle(0).sent(Integer.MAX_VALUE, 0));
    }
}
