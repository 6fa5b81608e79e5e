package org.tampu.bulk;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

/** Receivers that are slow, die, close or come back, with the reason at both ends. */
class SlowReceiverTest {
    private static final int SLOW = 2;

    @Test
    @SuppressWarnings("try")
    void aReceiverThatTakesNothingIsCutByTheSlowRule() throws Exception {
        Collector collector = new Collector();
        CountDownLatch goOn = new CountDownLatch(1);
        collector.atData = goOn::await;
        try (var receiver = BulkSenderTest.receiver(collector);
                AutoCloseable released = goOn::countDown;
                var sender = BulkSenderTest.builder().frame(64 << 10).window(256 << 10).slow(SlowPolicy.cutAfter(Duration.ofMillis(300))).open()) {
            sender.connect(receiver.target());
            sender.start("slow");
            BulkException nobody = assertThrows(BulkException.class, () -> sender.send(new byte[1 << 20]));
            assertEquals(BulkException.Kind.NOBODY_LEFT, nobody.kind());
            assertTrue(nobody.getMessage().endsWith("took nothing for 0.3 s)"), nobody.getMessage());
            BulkDelivery cut = sender.stop().deliveries().get(0);
            assertEquals(BulkDelivery.Outcome.CUT, cut.outcome());
            assertEquals(BulkDelivery.Cut.SEND_TIMEOUT, cut.cut());
            assertEquals("took nothing for 0.3 s", cut.why());

            goOn.countDown();
            BulkHandler.End end = Collector.next(collector.resets);
            assertFalse(end.complete() || end.stopped());
            assertEquals(1, end.lost().size(), end.toString());
            assertEquals(SLOW, end.lost().get(0).cause());
            assertEquals(end.bytes(), end.lost().get(0).from());
            assertEquals(end.lost(), collector.lost);

            // It takes part in the next transfer.
            collector.atData = () -> { };
            byte[] content = BulkSenderTest.random(500_000);
            sender.start("next");
            sender.send(content);
            assertTrue(sender.stop().isComplete());
            assertArrayEquals(content, collector.bytes());
        }
    }

    @Test
    void aReceiverThatHoldsUpAnotherIsCutAndTheOtherHasAll() throws Exception {
        Collector slow = new Collector();
        Collector fast = new Collector();
        CountDownLatch goOn = new CountDownLatch(1);
        slow.atData = () -> goOn.await(20, java.util.concurrent.TimeUnit.MILLISECONDS);
        byte[] content = BulkSenderTest.random(4 << 20);
        try (var one = BulkSenderTest.receiver(slow); var two = BulkSenderTest.receiver(fast);
                var sender = BulkSenderTest.builder().receivers(2, Duration.ofSeconds(60)).frame(8 << 10).window(64 << 10)
                        .slow(SlowPolicy.cutAfter(Duration.ofSeconds(2))).open()) {
            sender.connect(one.target());
            sender.connect(two.target());
            sender.start("");
            sender.send(content);
            List<BulkDelivery> deliveries = sender.stop().deliveries();
            assertEquals(BulkDelivery.Cut.SLOW, deliveries.get(0).cut(), deliveries.toString());
            assertEquals("held up the others for 2 s", deliveries.get(0).why());
            assertEquals(BulkDelivery.Outcome.COMPLETE, deliveries.get(1).outcome(), deliveries.toString());
            assertArrayEquals(content, fast.bytes());
            goOn.countDown();
            BulkHandler.End end = Collector.next(slow.resets);
            assertEquals(List.of(SLOW), end.lost().stream().map(LostRange::cause).toList());
            assertEquals(end.bytes(), end.lost().get(0).from());
            assertTrue(end.lost().get(0).to() > end.bytes() && end.lost().get(0).to() <= content.length, end.toString());
        }
    }

    @Test
    void aSlowReceiverIsWaitedForWhereThePolicySaysSo() throws Exception {
        Collector collector = new Collector();
        collector.atData = () -> Thread.sleep(1);
        byte[] content = BulkSenderTest.random(200_000);
        try (var receiver = BulkSenderTest.receiver(collector);
                var sender = BulkSenderTest.builder().frame(1000).window(4000).ackWait(Duration.ZERO).slow(SlowPolicy.waits()).open()) {
            sender.connect(receiver.target());
            sender.start("");
            sender.send(content);
            assertTrue(sender.stop().isComplete());
            assertArrayEquals(content, collector.bytes());
        }
    }

    /** Checks that each byte was delivered or is in a range that both ends know; returns the number of missing bytes. */
    private static long checkRanges(byte[] content, Collector collector, BulkHandler.End end, BulkDelivery delivery) {
        java.io.ByteArrayOutputStream kept = new java.io.ByteArrayOutputStream();
        int from = 0;
        for (LostRange range : end.lost()) {
            kept.write(content, from, (int) range.from() - from);
            from = (int) range.to();
        }
        kept.write(content, from, content.length - from);
        assertArrayEquals(kept.toByteArray(), collector.bytes());
        assertEquals(end.lost().stream().mapToLong(LostRange::bytes).sum(), delivery.lost().stream().mapToLong(LostRange::bytes).sum());
        return content.length - kept.size();
    }

    @Test
    @SuppressWarnings("try")
    void dataIsLeftOutForASlowReceiverAndTheOtherHasAll() throws Exception {
        Collector slow = new Collector();
        Collector fast = new Collector();
        CountDownLatch goOn = new CountDownLatch(1);
        slow.atData = goOn::await;
        byte[] content = BulkSenderTest.random(16 << 20);
        try (var one = BulkSenderTest.receiver(slow); var two = BulkSenderTest.receiver(fast);
                AutoCloseable released = goOn::countDown;
                var sender = BulkSenderTest.builder().receivers(2, Duration.ofSeconds(60)).frame(8 << 10).window(64 << 10)
                        .slow(SlowPolicy.skipAfter(Duration.ofMillis(300))).open()) {
            sender.connect(one.target());
            sender.connect(two.target());
            sender.start("");
            for (int at = 0; at < content.length; at += 1 << 20) {
                sender.send(java.util.Arrays.copyOfRange(content, at, at + (1 << 20)));
            }
            goOn.countDown();
            slow.atData = () -> { };
            List<BulkDelivery> deliveries = sender.stop().deliveries();
            assertEquals(BulkDelivery.Outcome.INCOMPLETE, deliveries.get(0).outcome(), deliveries.toString());
            assertEquals(BulkDelivery.Outcome.COMPLETE, deliveries.get(1).outcome(), deliveries.toString());
            assertArrayEquals(content, fast.bytes());
            BulkHandler.End end = Collector.next(slow.ends);
            assertTrue(end.stopped() && !end.complete(), end.toString());
            assertTrue(checkRanges(content, slow, end, deliveries.get(0)) > 1 << 20);
            assertEquals(List.of(), end.faults());
            assertTrue(end.lost().stream().allMatch(range -> range.cause() == SLOW), end.toString());

            // It has caught up, and misses nothing of the next transfer.
            byte[] next = BulkSenderTest.random(100_000);
            sender.start("next");
            sender.send(next);
            assertTrue(sender.stop().check().isComplete());
            assertArrayEquals(next, slow.bytes());
        }
    }

    @Test
    void dataIsLeftOutAcrossBrokenConnectionsAndBothEndsKnowIt() throws Exception {
        Collector slow = new Collector();
        Collector fast = new Collector();
        slow.atData = () -> Thread.sleep(2);
        byte[] content = BulkSenderTest.random(4 << 20);
        try (var one = BulkSenderTest.receiver(slow).resume(Duration.ofSeconds(30)); var two = BulkSenderTest.receiver(fast);
                var relay = new BreakingRelay(one.target(), 300_000);
                var sender = BulkSenderTest.builder().receivers(2, Duration.ofSeconds(60)).frame(4 << 10).window(64 << 10)
                        .slow(SlowPolicy.skipAfter(Duration.ofMillis(20))).open()) {
            sender.connect(relay.target());
            sender.connect(two.target());
            sender.start("");
            for (int at = 0; at < content.length; at += 64 << 10) {
                sender.send(java.util.Arrays.copyOfRange(content, at, at + (64 << 10)));
                Thread.sleep(2);
            }
            List<BulkDelivery> deliveries = sender.stop().deliveries();
            // On a busy machine either of them may be too slow for so short a time.
            checkRanges(content, slow, Collector.next(slow.ends), deliveries.get(0));
            checkRanges(content, fast, Collector.next(fast.ends), deliveries.get(1));
        }
    }

    @Test
    @SuppressWarnings("try")
    void aStopThatIsNotAcknowledgedHasItsOwnTime() throws Exception {
        Collector collector = new Collector();
        CountDownLatch goOn = new CountDownLatch(1);
        collector.atStop = goOn::await;
        try (var receiver = BulkSenderTest.receiver(collector);
                AutoCloseable released = goOn::countDown;
                var sender = BulkSenderTest.builder().ackWait(Duration.ofMillis(250)).open()) {
            sender.connect(receiver.target());
            sender.start("");
            BulkDelivery cut = sender.stop().deliveries().get(0);
            assertEquals(BulkDelivery.Cut.ACK_TIMEOUT, cut.cut());
            assertEquals("acknowledged nothing for 0.25 s", cut.why());
            goOn.countDown();
        }
    }

    @Test
    void aReceiverThatDiesIsGoneAndTheOtherHasAll() throws Exception {
        Collector dying = new Collector();
        Collector other = new Collector();
        CountDownLatch began = new CountDownLatch(1);
        dying.atData = began::countDown;
        byte[] content = BulkSenderTest.random(1 << 20);
        try (var two = BulkSenderTest.receiver(other);
                var sender = BulkSenderTest.builder().receivers(2, Duration.ofSeconds(60)).resume(Duration.ofMillis(200)).open()) {
            var one = BulkSenderTest.receiver(dying);
            sender.connect(one.target());
            sender.connect(two.target());
            sender.start("");
            sender.send(content);
            began.await();
            one.close();
            sender.send(content);
            List<BulkDelivery> deliveries = sender.stop().deliveries();
            assertEquals(BulkDelivery.Outcome.GONE, deliveries.get(0).outcome(), deliveries.toString());
            assertEquals(BulkDelivery.Cut.AWAY, deliveries.get(0).cut());
            assertEquals("its connection was away for too long", deliveries.get(0).why());
            assertTrue(deliveries.get(1).isComplete());
            assertFalse(Collector.next(dying.ends).complete());
        }
    }

    @Test
    void aReceiverThatClosesInItsLastCallHasAnsweredIt() throws Exception {
        for (int run = 0; run < 20; run++) {
            Collector collector = new Collector();
            var receiver = BulkSenderTest.receiver(collector);
            Thread[] closing = new Thread[1];
            collector.atStop = () -> {
                closing[0] = new Thread(() -> {
                    try {
                        receiver.close();
                    } catch (java.io.IOException failed) {
                        throw new java.io.UncheckedIOException(failed);
                    }
                });
                closing[0].start();
                Thread.sleep(20);
            };
            try (var sender = BulkSenderTest.builder().resume(Duration.ofMillis(100)).open()) {
                sender.connect(receiver.target());
                sender.start("");
                sender.send(new byte[100_000]);
                assertEquals(BulkDelivery.Outcome.COMPLETE, sender.stop().deliveries().get(0).outcome());
            }
            closing[0].join();
        }
    }

    @Test
    void brokenConnectionsAreOpenedAgainAndNothingIsLost() throws Exception {
        Collector collector = new Collector();
        byte[] content = BulkSenderTest.random(5 << 20);
        try (var receiver = BulkSenderTest.receiver(collector).resume(Duration.ofSeconds(30));
                var relay = new BreakingRelay(receiver.target(), 700_000);
                var sender = BulkSenderTest.builder().frame(10_000).window(300_000).checksum(true).open()) {
            sender.connect(relay.target());
            sender.start("");
            sender.send(content);
            assertTrue(sender.stop().check().isComplete());
            assertArrayEquals(content, collector.bytes());
            assertEquals(List.of(), Collector.next(collector.ends).lost());
            assertTrue(relay.connections() > 5, relay.connections() + " connections");
        }
    }
}
