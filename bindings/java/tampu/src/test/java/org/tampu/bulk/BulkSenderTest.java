package org.tampu.bulk;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A sender beside receivers of this binding: whole transfers, parameters, files, refusals. */
class BulkSenderTest {
    static final Random RANDOM = new Random();

    static BulkReceiver receiver(Collector collector) throws IOException {
        return new BulkReceiver("test", "receiver", "stream", Map.of("data", collector)).resume(Duration.ofMillis(500));
    }

    static BulkSender.Builder builder() {
        return BulkSender.builder("test", "sender", "stream").receivers(1, Duration.ofSeconds(60)).ackWait(Duration.ofSeconds(60));
    }

    static byte[] random(int length) {
        byte[] bytes = new byte[length];
        RANDOM.nextBytes(bytes);
        return bytes;
    }

    @Test
    void everySizeAroundFramesAndWindowArrivesWhole() throws Exception {
        Collector collector = new Collector();
        try (var receiver = receiver(collector); var sender = builder().frame(1000).window(2500).checksum(true).open()) {
            sender.connect(receiver.target());
            for (int size : new int[] {0, 1, 999, 1000, 1001, 1999, 2000, 2001, 2500, 2501, 100_000}) {
                byte[] content = random(size);
                assertEquals(1, sender.start("size " + size).receivers());
                sender.send(content);
                sender.send(ByteBuffer.wrap(content));
                BulkReport report = sender.stop();
                assertTrue(report.check().isComplete());
                assertEquals(2L * size, report.bytes());
                assertEquals(2L * size, report.deliveries().get(0).acknowledged());
                assertEquals(new BulkHandler.End(report.transfer(), true, true, 2L * size, List.of(), List.of()), Collector.next(collector.ends));
                assertEquals("size " + size, collector.parameter);
                assertArrayEquals(content, Arrays.copyOf(collector.bytes(), size));
                assertArrayEquals(content, Arrays.copyOfRange(collector.bytes(), size, 2 * size));
                assertEquals(2, collector.blocks);
            }
        }
    }

    @Test
    void aReceiverListensWhereItIsToldAndNamesThatPlace() throws Exception {
        Collector collector = new Collector();
        Map<String, BulkHandler> flows = Map.of("data", collector);
        var everywhere = new InetSocketAddress("0.0.0.0", 0);
        var missing = assertThrows(IllegalArgumentException.class, () -> new BulkReceiver("test", "receiver", "stream", flows, everywhere, null));
        assertTrue(missing.getMessage().contains("`announce`"), missing.getMessage());
        try (var receiver = new BulkReceiver("test", "receiver", "stream", flows, new InetSocketAddress("127.0.0.2", 0), null);
                var other = new BulkReceiver("test", "receiver", "stream", flows, everywhere, "127.0.0.3");
                var sender = builder().open()) {
            assertEquals("127.0.0.2", receiver.target().host());
            assertEquals("127.0.0.3", other.target().host());
            sender.connect(receiver.target());
            sender.start("one");
            sender.send(random(1000));
            assertTrue(sender.stop().isComplete());
            sender.connect(other.target());
            assertTrue(sender.waitFor(2, Duration.ofSeconds(60)));
        }
    }

    @Test
    void aTransferWithoutDataAndOneInPieces() throws Exception {
        Collector collector = new Collector();
        try (var receiver = receiver(collector); var sender = builder().open()) {
            sender.connect(receiver.target());
            sender.start(Map.of("run", 7));
            assertTrue(sender.stop().isComplete());
            assertEquals("{\"run\":7}", collector.parameter.replace(" ", ""));
            assertEquals(0, Collector.next(collector.ends).bytes());

            sender.start(new byte[0]);
            byte[] content = random(3000);
            ByteBuffer direct = ByteBuffer.allocateDirect(3000).put(content).flip();
            sender.sendPiece(direct.duplicate().limit(1000), false);
            sender.sendPiece(direct.duplicate().position(1000).asReadOnlyBuffer(), true);
            assertTrue(sender.stop().isComplete());
            assertArrayEquals(content, collector.bytes());
            assertEquals(1, collector.blocks);
        }
    }

    @Test
    void severalReceiversGetTheSame() throws Exception {
        List<Collector> collectors = List.of(new Collector(), new Collector(), new Collector());
        try (var one = receiver(collectors.get(0)); var two = receiver(collectors.get(1)); var three = receiver(collectors.get(2));
                var sender = builder().receivers(3, Duration.ofSeconds(60)).frame(4096).window(50_000).open()) {
            List.of(one, two, three).forEach(receiver -> sender.connect(receiver.target()));
            byte[] content = random(1_000_000);
            assertEquals(3, sender.start("").receivers());
            sender.send(content);
            BulkReport report = sender.stop().check();
            assertEquals(3, report.deliveries().size());
            for (Collector collector : collectors) {
                assertTrue(Collector.next(collector.ends).complete());
                assertArrayEquals(content, collector.bytes());
            }
        }
    }

    @Test
    void aFileIsSentWithItsLabelAndOnlyItsRest(@TempDir Path directory) throws Exception {
        byte[] content = random(700_001);
        Path file = Files.write(directory.resolve("dump.bin"), content);
        Collector collector = new Collector();
        try (var receiver = receiver(collector); var sender = builder().open()) {
            sender.connect(receiver.target());
            assertEquals(content.length, sender.sendFile(file).check().bytes());
            assertArrayEquals(content, collector.bytes());
            long modified = Files.getLastModifiedTime(file).to(java.util.concurrent.TimeUnit.NANOSECONDS);
            assertEquals("{\"file\":\"dump.bin\",\"size\":700001,\"modified\":" + modified + "}", collector.parameter.replace(" ", ""));

            collector.has = 500_000;
            assertTrue(sender.sendFile(file, "run7/dump.bin", "uid", true).isComplete());
            assertArrayEquals(Arrays.copyOfRange(content, 500_000, content.length), collector.bytes());
            assertTrue(collector.parameter.contains("\"continue\":true") && collector.parameter.contains("\"parameter\":\"uid\""));

            // A file that shrinks gives the transfer up; the next one is whole.
            collector.has = 0;
            collector.ends.clear();
            try (var channel = java.nio.channels.FileChannel.open(file)) {
                sender.start("short");
                assertThrows(java.io.EOFException.class, () -> sender.send(channel, 0, content.length + 1L));
                sender.reset();
            }
            assertFalse(Collector.next(collector.resets).complete());
            assertTrue(sender.sendFile(file).isComplete());
            assertArrayEquals(content, collector.bytes());
        }
    }

    @Test
    void aRefusedTransferHasItsReasonAtBothEnds() throws Exception {
        Collector collector = new Collector();
        collector.atData = () -> {
            throw new GiveUp("the disk is full");
        };
        try (var receiver = receiver(collector); var sender = builder().frame(1000).open()) {
            sender.connect(receiver.target());
            sender.start("");
            sender.send(random(10_000));
            BulkDelivery refused = sender.stop().deliveries().get(0);
            assertEquals(BulkDelivery.Outcome.REFUSED, refused.outcome());
            assertEquals("the disk is full", refused.why());
            assertTrue(refused.faults().contains(new BulkFault(8, 1, "the disk is full")), refused.toString());
            assertFalse(Collector.next(collector.ends).complete());

            collector.atData = () -> { };
            collector.atStart = () -> {
                throw new GiveUp("not at night");
            };
            sender.start("");
            sender.send(random(10));
            BulkReport report = sender.stop();
            assertEquals("not at night", report.deliveries().get(0).why());
            BulkException incomplete = assertThrows(BulkException.class, report::check);
            assertEquals(BulkException.Kind.INCOMPLETE, incomplete.kind());
            assertTrue(incomplete.getMessage().contains("not at night"), incomplete.getMessage());
        }
    }

    @Test
    void aRefusedSenderHearsTheReason() throws Exception {
        try (var receiver = receiver(new Collector())) {
            Map<String, BulkSender.Builder> senders = Map.of(
                    "it has no such flow: there is data", builder().flow("other"),
                    "it has no such stream: this is 'stream'", BulkSender.builder("test", "sender", "elsewhere"),
                    "it does not know this sender's token or domain", BulkSender.builder("alma", "sender", "stream"));
            for (var each : senders.entrySet()) {
                try (var sender = each.getValue().receivers(1, Duration.ofSeconds(1)).open()) {
                    sender.connect(receiver.target());
                    BulkException refused = assertThrows(BulkException.class, () -> sender.start(""));
                    assertEquals(BulkException.Kind.NO_RECEIVER, refused.kind());
                    assertTrue(refused.getMessage().endsWith(each.getKey()), refused.getMessage());
                }
            }
        }
    }

    @Test
    void callsInTheWrongOrderAreRefusedAndChangeNothing() throws Exception {
        Collector collector = new Collector();
        BulkSender sender = builder().frame(1000).open();
        try (var receiver = receiver(collector)) {
            sender.connect(receiver.target());
            assertEquals(BulkException.Kind.WRONG_ORDER, assertThrows(BulkException.class, () -> sender.send(new byte[1])).kind());
            assertEquals(BulkException.Kind.WRONG_ORDER, assertThrows(BulkException.class, sender::stop).kind());
            assertEquals(BulkException.Kind.PARAMETER_TOO_LONG,
                    assertThrows(BulkException.class, () -> sender.start(new byte[(16 << 10) + 1])).kind());
            sender.start(new byte[16 << 10]);
            assertEquals(BulkException.Kind.WRONG_ORDER, assertThrows(BulkException.class, () -> sender.start("")).kind());
            sender.send(new byte[1]);
            assertEquals(BulkException.Kind.WRONG_ORDER, assertThrows(BulkException.class, () -> sender.beginAt(5)).kind());
            assertTrue(sender.stop().isComplete());
            assertEquals(1, Collector.next(collector.ends).bytes());
        } finally {
            sender.close();
        }
        assertEquals(BulkException.Kind.CLOSED, assertThrows(BulkException.class, () -> sender.start("")).kind());
        assertThrows(IllegalArgumentException.class, () -> builder().flow("a#b"));
        assertThrows(IllegalArgumentException.class, () -> builder().window(0));
        assertThrows(IllegalArgumentException.class, () -> SlowPolicy.cutAfter(Duration.ZERO));
    }

    @Test
    void eitherEndMayDemandProtection() throws Exception {
        byte[] content = random(1_000_000);
        for (Protection own : List.of(Protection.AUTO, Protection.AUTHENTICATED, Protection.ENCRYPTED)) {
            for (Protection other : List.of(Protection.AUTO, Protection.AUTHENTICATED, Protection.ENCRYPTED)) {
                Collector collector = new Collector();
                try (var receiver = receiver(collector).protection(other);
                        var sender = builder().frame(100_000).protection(own).checksum(true).open();
                        var relay = new BreakingRelay(receiver.target(), Integer.MAX_VALUE)) {
                    sender.connect(relay.target());
                    sender.start("protected");
                    sender.send(content);
                    assertTrue(sender.stop().check().isComplete());
                    assertArrayEquals(content, collector.bytes());
                    boolean isProtected = own != Protection.AUTO || other != Protection.AUTO;
                    assertEquals(!isProtected, relay.saw(Arrays.copyOf(content, 64)), own + " and " + other);
                    // Without protection the receiver demands it after it has seen the token.
                    assertEquals(own == Protection.AUTO, relay.saw(receiver.target().token()), own + " and " + other);
                }
            }
        }
    }

    @Test
    void aReceiverThatDoesNotKnowTheTokenIsNotSentTo() throws Exception {
        try (var receiver = receiver(new Collector());
                var sender = builder().protection(Protection.ENCRYPTED).receivers(1, Duration.ofSeconds(1)).open()) {
            sender.connect(new BulkTarget("127.0.0.1", receiver.target().port(), new byte[16]));
            BulkException refused = assertThrows(BulkException.class, () -> sender.start(""));
            assertTrue(refused.getMessage().contains("does not prove that it knows the token"), refused.getMessage());
        }
    }

    @Test
    void closingDeliversTheLastBlocksAndThenGivesUp() throws Exception {
        Collector collector = new Collector();
        // Most of the data waits in the sender when it is closed.
        collector.atData = () -> Thread.sleep(5);
        byte[] content = random(8_000_000);
        try (var receiver = receiver(collector)) {
            try (var sender = builder().frame(64 << 10).open()) {
                sender.connect(receiver.target());
                sender.start("");
                sender.send(content);
            }
            BulkHandler.End end = Collector.next(collector.resets);
            assertFalse(end.complete() || end.stopped());
            assertArrayEquals(content, collector.bytes());
            assertEquals(List.of(), end.lost());
        }
    }
}
