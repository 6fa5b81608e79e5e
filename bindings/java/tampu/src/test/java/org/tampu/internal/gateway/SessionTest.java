package org.tampu.internal.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.tampu.gateway.GatewayException;

/** Sessions beside a hub of this test, whose connections break. */
@Timeout(60)
class SessionTest {
    @TempDir
    Path directory;

    private ServerSocketChannel server;
    private Session session;
    private final BlockingQueue<Frame> taken = new LinkedBlockingQueue<>();
    private final List<String> ends = Collections.synchronizedList(new ArrayList<>());

    private final class Taker implements Session.Handler {
        @Override
        public void take(Frame frame) {
            taken.add(frame);
        }

        @Override
        public Frame renew(int id) {
            return Frame.of(Frame.OPEN, id, Map.of("again", true));
        }

        @Override
        public void ended(GatewayException why) {
            ends.add(why.code());
        }
    }

    /** The hub's end of one connection. */
    private final class Hub implements AutoCloseable {
        private final SocketChannel channel = server.accept();
        private final ByteBuffer bytes = ByteBuffer.allocate(1 << 20).flip();

        Hub() throws Exception {}

        /** The next frame that is no acknowledgement. */
        Frame next() throws Exception {
            while (true) {
                Frame frame = Frame.decode(bytes);
                if (frame != null && frame.kind() != Frame.ACK) {
                    return frame;
                } else if (frame == null) {
                    bytes.compact();
                    assertTrue(channel.read(bytes) >= 0, "the connection ended");
                    bytes.flip();
                }
            }
        }

        void send(Frame frame) throws Exception {
            channel.write(ByteBuffer.wrap(frame.encode()));
        }

        void welcome(boolean resumed, int received) throws Exception {
            send(Frame.of(Frame.WELCOME, 0, Map.of("version", 1, "session", "5e", "resumed", resumed, "received", "" + received, "beat_ms", 60_000)));
        }

        @Override
        public void close() throws IOException {
            channel.close();
        }
    }

    @BeforeEach
    void listen() throws Exception {
        server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        server.bind(UnixDomainSocketAddress.of(directory.resolve("s")));
        session = new Session(() -> Link.unix(directory.resolve("s")), Map.of("versions", List.of(1), "client", "java 7"));
    }

    @AfterEach
    void close() throws Exception {
        session.close();
        server.close();
    }

    private Frame publish(int number) {
        return new Frame(Frame.PUBLISH, 0, 1, 0, new byte[] {(byte) number});
    }

    private void checkOtherVersion(Frame answer) throws Exception {
        try (Hub hub = new Hub()) {
            assertEquals(Frame.HELLO, hub.next().kind());
            hub.send(answer);
            GatewayException why = assertThrows(GatewayException.class, () -> session.awaitWelcome(30_000));
            assertEquals("version", why.code());
            for (String word : List.of("version 2", "java 7 speaks 1", "update the hub")) {
                assertTrue(why.getMessage().contains(word), why.getMessage());
            }
        }
    }

    @Test
    void aHubThatRefusesTheVersionEndsTheSession() throws Exception {
        checkOtherVersion(Frame.of(Frame.BYE, 0, Map.of("code", "version", "error", "this hub speaks version 2")));
    }

    @Test
    void aHubThatChoosesAnotherVersionEndsTheSession() throws Exception {
        checkOtherVersion(Frame.of(Frame.WELCOME, 0, Map.of("version", 2, "session", "5e")));
    }

    @Test
    void aLostConnectionResumesWithoutHoleAndDouble() throws Exception {
        try (Hub hub = new Hub()) {
            assertEquals(Map.of("versions", List.of(1L), "client", "java 7"), hub.next().json());
            hub.welcome(false, 0);
            assertEquals("5e", session.awaitWelcome(10_000).get("session"));
            session.open(new Taker(), id -> Frame.of(Frame.OPEN, id, Map.of()));
            session.send(publish(1));
            session.send(publish(2));
            assertEquals(List.of(1L, 2L, 3L), List.of(hub.next().number(), hub.next().number(), hub.next().number()));
            hub.send(Frame.of(Frame.OPENED, 1, Map.of()).counted(1));
            hub.send(new Frame(Frame.DATA, 0, 1, 2, new byte[] {2}));
            assertEquals(1, taken.poll(10, TimeUnit.SECONDS).number());
            assertEquals(2, taken.poll(10, TimeUnit.SECONDS).number());
        }
        session.send(publish(3));
        try (Hub hub = new Hub()) {
            Map<String, Object> hello = hub.next().json();
            assertEquals(List.of("5e", "2"), List.of(hello.get("session"), hello.get("received")));
            // The hub has two of the three, and repeats a frame that we have.
            hub.welcome(true, 2);
            assertEquals(List.of(3L, 4L), List.of(hub.next().number(), hub.next().number()));
            hub.send(new Frame(Frame.DATA, 0, 1, 2, new byte[] {2}));
            hub.send(new Frame(Frame.DATA, 0, 1, 3, new byte[] {3}));
            assertEquals(3, taken.poll(10, TimeUnit.SECONDS).number(), "the repetition is ignored");
            hub.send(Frame.of(Frame.ACK, 0, 4));
            assertTrue(session.flush(10_000));
            // A hole is an error of the hub: the client connects again and says what it has.
            hub.send(new Frame(Frame.DATA, 0, 1, 5, new byte[] {5}));
        }
        try (Hub hub = new Hub()) {
            assertEquals("3", hub.next().json().get("received"));
            // A hub that was restarted knows nothing: subscriptions are opened again, numbers begin anew.
            hub.welcome(false, 0);
            Frame again = hub.next();
            assertEquals(List.of(Frame.OPEN, 1L, Map.of("again", true)), List.of(again.kind(), again.number(), again.json()));
            hub.send(Frame.of(Frame.BYE, 0, Map.of("code", "denied", "error", "no")));
        }
        awaitEnds();
        assertEquals(List.of("denied"), ends);
    }

    @Test
    void aSenderWaitsForAHubThatIsBehindAndCanRefuseToWait() throws Exception {
        try (Hub hub = new Hub()) {
            hub.next();
            hub.welcome(false, 0);
            session.awaitWelcome(10_000);
            Frame large = new Frame(Frame.PUBLISH, 0, 1, 0, new byte[1 << 20]);
            int sent = 0;
            Thread reads = new Thread(() -> {
                try {
                    ByteBuffer sink = ByteBuffer.allocate(1 << 20);
                    while (hub.channel.read(sink) >= 0) {
                        sink.clear();
                    }
                } catch (Exception closed) {
                    // The test has ended.
                }
            });
            reads.setDaemon(true);
            reads.start();
            while (session.send(large, 0)) {
                sent++;
                assertTrue(sent < 20);
            }
            assertTrue(session.waiting() > 8 << 20);
            hub.send(Frame.of(Frame.ACK, 0, sent));
            assertTrue(session.send(large, 10_000_000_000L));
        }
    }

    /** A connection on which only the greeting can be written, and on which the hub says what the test tells. */
    private static final class BrokenLink implements Link {
        private final BlockingQueue<byte[]> said = new LinkedBlockingQueue<>();
        private int written;

        @Override
        public int read(ByteBuffer into) throws IOException {
            try {
                byte[] next = said.take();
                into.put(next);
                return next.length == 0 ? -1 : next.length;
            } catch (InterruptedException interrupted) {
                return -1;
            }
        }

        @Override
        public void write(byte[] bytes) throws IOException {
            written++;
            if (written > 1) {
                throw new IOException("broken");
            }
        }

        @Override
        public void close() {
            said.add(new byte[0]);
        }
    }

    @Test
    void failedWritesHideNeitherTheHubsLastWordsNorTheNextConnection() throws Exception {
        session.close();
        BlockingQueue<BrokenLink> links = new LinkedBlockingQueue<>();
        session = new Session(() -> {
            BrokenLink link = new BrokenLink();
            links.add(link);
            return link;
        }, Map.of("versions", List.of(1), "client", "java 7"));
        byte[] welcome = Frame.of(Frame.WELCOME, 0, Map.of("version", 1, "session", "5e", "resumed", true, "received", "0", "beat_ms", 60_000)).encode();
        BrokenLink first = links.take();
        first.said.add(welcome);
        session.awaitWelcome(10_000);
        session.open(new Taker(), id -> Frame.of(Frame.OPEN, id, Map.of()));
        session.send(publish(1));
        first.close();
        // Neither of the two frames can be written again.
        BrokenLink second = links.take();
        second.said.add(welcome);
        second.close();
        BrokenLink third = links.take();
        third.said.add(welcome);
        third.said.add(Frame.of(Frame.BYE, 0, Map.of("code", "denied", "error", "no")).encode());
        awaitEnds();
        assertEquals(List.of("denied"), ends);
    }

    private void awaitEnds() throws Exception {
        while (ends.isEmpty()) {
            Thread.sleep(1);
        }
    }

    /** A reader that keeps what it gets, and waits for the test before it returns. */
    private final class StreamReader implements CreditedStream.Reader {
        private final BlockingQueue<Integer> permits = new LinkedBlockingQueue<>();

        @Override
        public void take(Frame frame) throws GatewayException {
            taken.add(frame);
            try {
                permits.take();
            } catch (InterruptedException interrupted) {
                throw new GatewayException("interrupted", "the test ended");
            }
        }

        @Override
        public void renewed() {
            ends.add("renewed");
        }

        @Override
        public void ended(GatewayException why) {
            ends.add(why.code());
            taken.add(Frame.of(Frame.BYE, 0, Map.of()));
        }
    }

    private static Frame data(int number, int bytes) {
        return new Frame(Frame.DATA, 0, 1, number, new byte[bytes]);
    }

    private CreditedStream open(StreamReader reader) throws Exception {
        CreditedStream stream = new CreditedStream(session, Map.of("topics", List.of("a")), 100, reader);
        stream.open("test-stream");
        return stream;
    }

    private Frame took() throws Exception {
        return Objects.requireNonNull(taken.poll(10, TimeUnit.SECONDS), "nothing came");
    }

    @Test
    void aStreamGrantsCreditForWhatItsReaderHasSeenAndCountsAnewInAnotherSession() throws Exception {
        StreamReader reader = new StreamReader();
        try (Hub hub = new Hub()) {
            hub.next();
            hub.welcome(false, 0);
            session.awaitWelcome(10_000);
            open(reader);
            assertEquals(Map.of("topics", List.of("a"), "credit", 100L), hub.next().json());
            hub.send(data(1, 40));
            hub.send(data(2, 20));
            reader.permits.add(1);
            reader.permits.add(1);
            Frame credit = hub.next();
            assertEquals(List.of((long) Frame.CREDIT, 160L), List.of((long) credit.kind(), credit.value()));
            hub.send(data(3, 60));
            assertEquals(List.of(1L, 2L, 3L), List.of(took().number(), took().number(), took().number()));
        }
        try (Hub hub = new Hub()) {
            hub.next();
            hub.welcome(false, 0);
            assertEquals(Map.of("topics", List.of("a"), "credit", 100L), hub.next().json());
            // The reader returns from a frame of the session before, whose credit this one must not get.
            reader.permits.add(1);
            hub.send(data(1, 60));
            reader.permits.add(1);
            assertEquals(1, took().number());
            assertEquals(160, hub.next().value());
            assertEquals(List.of("renewed"), ends);
            hub.send(Frame.of(Frame.ENDED, 1, Map.of("code", "denied")).counted(2));
            assertEquals(Frame.BYE, took().kind());
            assertEquals(List.of("renewed", "denied"), ends);
        }
    }

    @Test
    void aStreamThatEndedOrWasClosedIsNotOpenedAgain() throws Exception {
        StreamReader slow = new StreamReader();
        StreamReader reader = new StreamReader();
        try (Hub hub = new Hub()) {
            hub.next();
            hub.welcome(false, 0);
            session.awaitWelcome(10_000);
            CreditedStream ended = open(slow);
            CreditedStream closed = open(reader);
            CreditedStream open = open(reader);
            assertEquals(List.of(1, 2, 3), List.of(hub.next().id(), hub.next().id(), hub.next().id()));
            closed.close();
            assertEquals(Frame.BYE, took().kind());
            Frame close = hub.next();
            assertEquals(List.of(Frame.CLOSE, 2), List.of(close.kind(), close.id()));
            assertTrue(closed.isClosing() && !open.isClosing() && !ended.isClosing());
            // The reader is busy when the end comes.
            hub.send(data(1, 1));
            assertEquals(1, took().number());
            hub.send(Frame.of(Frame.ENDED, 1, Map.of("code", "denied")).counted(2));
            hub.send(new Frame(Frame.DATA, 0, 3, 3, new byte[1]));
            assertEquals(3, took().number());
        }
        try (Hub hub = new Hub()) {
            hub.next();
            hub.welcome(false, 0);
            assertEquals(3, hub.next().id());
            slow.permits.add(1);
            assertEquals(Frame.BYE, took().kind());
            assertEquals(List.of("done", "denied"), ends);
            session.send(publish(1));
            assertEquals(Frame.PUBLISH, hub.next().kind(), "nothing else was opened or closed");
        }
    }

    private Session greeted(Hub hub) throws Exception {
        hub.next();
        hub.welcome(false, 0);
        session.awaitWelcome(10_000);
        return session;
    }

    /** Fills the window of a hub that reads all and acknowledges nothing; returns the number of frames. */
    private int fill(Hub hub) throws Exception {
        Thread reads = new Thread(() -> {
            try {
                for (ByteBuffer sink = ByteBuffer.allocate(1 << 20); hub.channel.read(sink) >= 0; sink.clear()) {
                    // Nothing is acknowledged.
                }
            } catch (Exception closed) {
                // The test has ended.
            }
        });
        reads.setDaemon(true);
        reads.start();
        int sent = 0;
        while (session.send(new Frame(Frame.PUBLISH, 0, 1, 0, new byte[1 << 20]), 0)) {
            sent++;
        }
        return sent;
    }

    /** Waits until a thread waits for the hub. */
    private static void awaitWaiting(Thread thread) throws Exception {
        while (thread.getState() != Thread.State.TIMED_WAITING) {
            assertTrue(thread.isAlive(), "it has not waited");
            Thread.sleep(1);
        }
    }

    @Test
    void anInterruptedSenderIsToldThatItsFrameWasNotSent() throws Exception {
        try (Hub hub = new Hub()) {
            greeted(hub);
            fill(hub);
            BlockingQueue<Object> results = new LinkedBlockingQueue<>();
            Thread sender = new Thread(() -> {
                try {
                    session.send(publish(1));
                    results.add("sent");
                } catch (GatewayException why) {
                    results.add(why.code() + " " + Thread.currentThread().isInterrupted());
                }
            });
            sender.start();
            awaitWaiting(sender);
            long waiting = session.waiting();
            sender.interrupt();
            assertEquals("interrupted true", results.take());
            assertEquals(waiting, session.waiting());
        }
    }

    @Test
    void aQuestionThatWaitsForRoomIsSentOnceByASessionThatBeganAnew() throws Exception {
        Thread asker;
        try (Hub hub = new Hub()) {
            greeted(hub);
            fill(hub);
            asker = new Thread(() -> {
                try {
                    session.open(new Taker(), id -> new Frame(Frame.ASK, 0, id, 0, new byte[1]));
                } catch (GatewayException over) {
                    ends.add(over.code());
                }
            });
            asker.start();
            awaitWaiting(asker);
            // Those without data of the program do not wait.
            session.open(new Taker(), id -> Frame.of(Frame.OPEN, id, Map.of()));
        }
        try (Hub hub = new Hub()) {
            hub.next();
            hub.welcome(false, 0);
            List<Integer> kinds = new ArrayList<>(List.of(hub.next().kind(), hub.next().kind()));
            session.send(publish(1));
            kinds.add(hub.next().kind());
            assertEquals(List.of(Frame.OPEN, Frame.ASK, Frame.PUBLISH), kinds);
            asker.join();
            assertEquals(List.of(), ends);
        }
    }

    @Test
    void aConnectionIsLeftOnWhichTheHubNeitherReadsNorSpeaks() throws Exception {
        Hub hub = new Hub();
        hub.next();
        hub.send(Frame.of(Frame.WELCOME, 0, Map.of("version", 1, "session", "5e", "resumed", false, "received", "0", "beat_ms", 100)));
        session.awaitWelcome(10_000);
        Thread sender = new Thread(() -> {
            try {
                while (true) {
                    session.send(new Frame(Frame.PUBLISH, 0, 1, 0, new byte[1 << 18]));
                }
            } catch (GatewayException over) {
                // The test has ended.
            }
        });
        sender.start();
        try (Hub next = new Hub()) {
            assertEquals("5e", next.next().json().get("session"), "the session is resumed");
            next.welcome(true, 0);
            assertEquals(1, next.next().number());
        }
        hub.close();
        session.close();
        sender.join();
    }

    @Test
    void aHubThatDoesNotAnswerTheGreetingIsLeft() throws Exception {
        session.close();
        server.close();
        server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        server.bind(UnixDomainSocketAddress.of(directory.resolve("t")));
        session = new Session(() -> Link.unix(directory.resolve("t")), Map.of("versions", List.of(1), "client", "java 7"), 50);
        Hub silent = new Hub();
        assertEquals(Frame.HELLO, silent.next().kind());
        try (Hub hub = new Hub()) {
            greeted(hub);
        }
        silent.close();
    }
}
