package org.tampu.bench;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.tampu.bulk.BulkHandler;
import org.tampu.bulk.BulkReceiver;
import org.tampu.bulk.BulkSender;
import org.tampu.gateway.Gateway;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;

/**
 * Measures blocks from a sender to a receiver in Java, or as messages of JeroMQ. Every word of a block is its number, and
 * the receiver checks every word. Both keep at most 8 MiB.
 *
 * <pre>
 * BenchBulk server tampu|jeromq BYTES SECONDS     sends after a line on standard input
 * BenchBulk client tampu|jeromq BYTES [PORT]      prints "connected", and at the end a line of JSON
 * </pre>
 */
public final class BenchBulk {
    private static final String STREAM = "bench-java";
    private static final int WINDOW = 8 << 20;
    private static final long LAST = -1;

    private BenchBulk() {}

    public static void main(String[] arguments) throws Exception {
        boolean isOurs = arguments[1].equals("tampu");
        int bytes = Integer.parseInt(arguments[2]);
        if (arguments[0].equals("server")) {
            double seconds = Double.parseDouble(arguments[3]);
            if (isOurs) {
                tampuServer(bytes, seconds);
            } else {
                jeromqServer(bytes, seconds);
            }
        } else if (isOurs) {
            tampuClient(bytes);
        } else {
            jeromqClient(bytes, Integer.parseInt(arguments[3]));
        }
    }

    private static String domain() {
        return System.getenv("TAMPU_DOMAIN");
    }

    /** Sends a block. */
    private interface Sender {
        void send(long number) throws Exception;
    }

    private static void push(Sender sender, double seconds) throws Exception {
        if (System.in.read() < 0) {
            throw new IOException("no order came");
        }
        long until = System.nanoTime() + (long) (seconds * 1e9);
        long number = 0;
        while (System.nanoTime() < until) {
            sender.send(number++);
        }
        System.out.printf("{\"pushed\": %d}%n", number);
    }

    private static void fill(ByteBuffer block, long number) {
        LongBuffer words = block.asLongBuffer();
        while (words.hasRemaining()) {
            words.put(number);
        }
    }

    private static void awaitEnd() throws IOException {
        while (System.in.read() >= 0) {
            // Until the receiver has everything.
        }
    }

    private static void tampuServer(int bytes, double seconds) throws Exception {
        try (Gateway gateway = Gateway.local("java-server");
                BulkSender sender = BulkSender.builder(domain(), "java-server", STREAM).window(WINDOW).receivers(1, Duration.ofSeconds(30)).open()) {
            sender.follow(gateway);
            sender.start("");
            ByteBuffer block = ByteBuffer.allocate(bytes);
            push(number -> {
                fill(block.clear(), number);
                sender.send(block);
            }, seconds);
            sender.stop().check();
            awaitEnd();
        }
    }

    private static void tampuClient(int bytes) throws Exception {
        Tally tally = new Tally(bytes);
        BulkHandler handler = new BulkHandler() {
            @Override
            public long start(Start start) {
                System.out.println("connected");
                return 0;
            }

            @Override
            public void data(ByteBuffer piece, long offset, boolean endOfBlock) {
                tally.take(piece, offset / bytes, endOfBlock);
            }

            @Override
            public void stop(End end) {
                tally.wrong += end.complete() ? 0 : 1;
                tally.over.countDown();
            }
        };
        try (Gateway gateway = Gateway.local("java-client");
                BulkReceiver receiver = new BulkReceiver(domain(), "java-client", STREAM, Map.of("data", handler))) {
            receiver.announce(gateway);
            tally.over.await();
        }
        tally.tell();
    }

    private static void jeromqServer(int bytes, double seconds) throws Exception {
        try (ZContext context = new ZContext()) {
            ZMQ.Socket socket = context.createSocket(SocketType.PUSH);
            socket.setSndHWM(Math.max(1, WINDOW / bytes / 2));
            System.out.println("port " + socket.bindToRandomPort("tcp://127.0.0.1"));
            // It waits until its receiver is there.
            socket.send(new byte[0]);
            push(number -> {
                // A message of JeroMQ belongs to it after the call.
                ByteBuffer block = ByteBuffer.allocate(bytes);
                fill(block, number);
                socket.send(block.array());
            }, seconds);
            ByteBuffer last = ByteBuffer.allocate(bytes);
            fill(last, LAST);
            socket.send(last.array());
            awaitEnd();
        }
    }

    private static void jeromqClient(int bytes, int port) throws Exception {
        try (ZContext context = new ZContext()) {
            ZMQ.Socket socket = context.createSocket(SocketType.PULL);
            socket.setRcvHWM(Math.max(1, WINDOW / bytes / 2));
            socket.connect("tcp://127.0.0.1:" + port);
            Tally tally = new Tally(bytes);
            while (tally.over.getCount() > 0) {
                byte[] block = socket.recv();
                if (block.length == 0) {
                    System.out.println("connected");
                } else {
                    ByteBuffer words = ByteBuffer.wrap(block);
                    if (words.getLong(0) == LAST) {
                        tally.over.countDown();
                    } else {
                        tally.take(words, tally.received, true);
                    }
                }
            }
            tally.tell();
        }
    }

    /** Counts blocks. One thread uses it at a time. */
    private static final class Tally {
        private final CountDownLatch over = new CountDownLatch(1);
        private final int bytes;
        private long received;
        private long wrong;
        private long first;
        private long last;

        Tally(int bytes) {
            this.bytes = bytes;
        }

        void take(ByteBuffer piece, long number, boolean isEnd) {
            LongBuffer words = piece.asLongBuffer();
            boolean isWhole = piece.remaining() <= bytes;
            while (words.hasRemaining()) {
                isWhole &= words.get() == number;
            }
            wrong += isWhole ? 0 : 1;
            if (isEnd) {
                last = System.nanoTime();
                first = received == 0 ? last : first;
                received++;
            }
        }

        void tell() {
            String row = "{\"received\": %d, \"wrong\": %d, \"missed\": 0, \"first_ns\": %d, \"last_ns\": %d}";
            System.out.println(String.format(Locale.ROOT, row, received, wrong, first, last));
        }
    }
}
